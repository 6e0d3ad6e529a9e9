-- The boot of the machine in which the newest instant was kept, the time since that boot, and whether the clock was in doubt.
SELECT coalesce((SELECT value FROM marks WHERE name = 'clock_boot'), 0) AS boot,
       coalesce((SELECT value FROM marks WHERE name = 'clock_up'), 0) AS up_ms,
       coalesce((SELECT value FROM marks WHERE name = 'clock_doubt'), 0) <> 0 AS in_doubt
