-- What happened in a stream within a minute, a quarter of an hour and two hours. Each is written by itself, so that the coarse
-- ones need no upkeep; `store/stats.rs` says how.
CREATE TABLE fernery.stream_stats (
    stream    text COLLATE "C" NOT NULL,
    minutes   bigint NOT NULL,                  -- 1, 15 or 120
    at        timestamptz NOT NULL,             -- when the span begins
    enqueued  bigint NOT NULL,
    completed bigint NOT NULL,
    failed    bigint NOT NULL,
    dead      bigint NOT NULL,
    waits     text COLLATE "C" NOT NULL,        -- a histogram, as fernery-core writes it
    runs      text COLLATE "C" NOT NULL,
    writes    bigint NOT NULL DEFAULT 0,
    kept_by   text COLLATE "C" NOT NULL,        -- the last write: after a lost answer it comes again
    PRIMARY KEY (stream, minutes, at)
) WITH (fillfactor = 70);
CREATE INDEX stream_stats_by_age ON fernery.stream_stats (minutes, at);
