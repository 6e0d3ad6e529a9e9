-- Keeps the instant that was found to be plausible; one that somebody else kept since then stays.
UPDATE fernery.clock SET newest_at = $1, boot = $2, up_ms = $3 WHERE newest_at IS NULL OR newest_at < $1 RETURNING 1;
