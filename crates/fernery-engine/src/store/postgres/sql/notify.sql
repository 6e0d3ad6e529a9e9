-- Tells other processes that jobs can be claimed. A hint: it need not survive a crash, so its commit does not wait for
-- the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('fernery_ready', $1::text);
