-- The newest instant that was current while somebody served this database, with the boot of that machine and the time since
-- then: a clock that is far beyond it is in doubt. `tried` is written to find out whether writes succeed.
CREATE TABLE fernery.clock (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    newest_at timestamptz,
    boot      bigint NOT NULL DEFAULT 0,
    up_ms     bigint NOT NULL DEFAULT 0,
    tried     bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO fernery.clock (one) VALUES (true);
