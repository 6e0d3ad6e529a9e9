-- Acts of operators on all jobs that match: what was asked, where its walk is, what it has done.
CREATE TABLE fernery.bulk_acts (
    act_id     text COLLATE "C" NOT NULL PRIMARY KEY, -- chosen by who asked
    verb       text NOT NULL,                         -- cancel, retry or purge
    job_status text NOT NULL,
    stream     text COLLATE "C",
    code       text,
    before_at  timestamptz NOT NULL,                  -- jobs that came, began to run, or ended from here on are not meant
    actor      text NOT NULL,
    expected   bigint NOT NULL,                       -- how many jobs were counted when it was asked for
    counted    text NOT NULL,                         -- EXACT, AT_LEAST or AT_MOST
    state      text NOT NULL,                         -- RUNNING, DONE or STOPPED
    done       bigint NOT NULL DEFAULT 0,
    refused    bigint NOT NULL DEFAULT 0,
    done_walk  bigint NOT NULL DEFAULT 0,             -- of done: in the walk over the jobs that it is in
    walk       text NOT NULL,                         -- where that walk is
    trouble    text,                                  -- why its last step failed, until one succeeds
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE INDEX bulk_acts_newest ON fernery.bulk_acts (created_at, act_id);
-- The one that has waited longest is next.
CREATE INDEX bulk_acts_running ON fernery.bulk_acts (updated_at, act_id) WHERE state = 'RUNNING';

-- The list of CANCELLED jobs: a job that is not cancelled has no entry. It takes its time over a long history, so it comes before what
-- locks other tables: until then claims go on.
CREATE INDEX jobs_cancelled ON fernery.jobs (job_id, stream, ended_at) WHERE ended = 'CANCELLED';
