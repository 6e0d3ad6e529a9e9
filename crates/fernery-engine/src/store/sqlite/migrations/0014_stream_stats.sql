-- What happened in a stream within a minute, a quarter of an hour and two hours. Each is written by itself, so that the coarse
-- ones need no upkeep; `store/stats.rs` says how.
CREATE TABLE stream_stats (
    stream    TEXT    NOT NULL,
    minutes   INTEGER NOT NULL,     -- 1, 15 or 120
    at        INTEGER NOT NULL,     -- when the span begins
    enqueued  INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    dead      INTEGER NOT NULL,
    waits     TEXT    NOT NULL,     -- a histogram, as fernery-core writes it
    runs      TEXT    NOT NULL,
    writes    INTEGER NOT NULL DEFAULT 0,
    kept_by   TEXT    NOT NULL,     -- the last write: after a lost answer it comes again
    PRIMARY KEY (stream, minutes, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX stream_stats_by_age ON stream_stats (minutes, at);
