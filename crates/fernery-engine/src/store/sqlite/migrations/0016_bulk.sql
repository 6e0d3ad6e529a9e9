-- Acts of operators on all jobs that match: what was asked, where its walk is, what it has done.
CREATE TABLE bulk_acts (
    act_id     TEXT    NOT NULL PRIMARY KEY, -- chosen by who asked
    verb       TEXT    NOT NULL,             -- cancel, retry or purge
    job_status TEXT    NOT NULL,
    stream     TEXT,
    code       TEXT,
    before_at  INTEGER NOT NULL,             -- jobs that came, began to run, or ended from here on are not meant
    actor      TEXT    NOT NULL,
    expected   INTEGER NOT NULL,             -- how many jobs were counted when it was asked for
    counted    TEXT    NOT NULL,             -- EXACT, AT_LEAST or AT_MOST
    state      TEXT    NOT NULL,             -- RUNNING, DONE or STOPPED
    done       INTEGER NOT NULL DEFAULT 0,
    refused    INTEGER NOT NULL DEFAULT 0,
    done_walk  INTEGER NOT NULL DEFAULT 0,   -- of done: in the walk over the jobs that it is in
    walk       TEXT    NOT NULL,             -- where that walk is
    trouble    TEXT,                         -- why its last step failed, until one succeeds
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT;
CREATE INDEX bulk_acts_newest ON bulk_acts (created_at, act_id);
-- The one that has waited longest is next.
CREATE INDEX bulk_acts_running ON bulk_acts (updated_at, act_id) WHERE state = 'RUNNING';

-- The list of CANCELLED jobs: a job that is not cancelled has no entry.
CREATE INDEX jobs_cancelled ON jobs (job_id, stream, ended_at) WHERE ended = 'CANCELLED';
