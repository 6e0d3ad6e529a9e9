-- Reads up to $1 expired leases of attempts, or of all ($2), after the id $3, of the streams $4 or of all, and locks them,
-- leaving alone what somebody else has in hand: another reaper, or a holder that reports at the last moment. The table
-- holds only what runs now, so this reads all of it.
WITH clock AS MATERIALIZED (
    SELECT fernery.fernery_now() AS now
), locked AS MATERIALIZED (
    SELECT l.*, clock.now FROM fernery.leases l, clock
    WHERE (l.expires_at <= clock.now OR $2) AND l.attempt_id IS NOT NULL AND ($3::uuid IS NULL OR l.resource_id > $3)
      AND ($4::text[] IS NULL OR l.stream = ANY ($4))
    ORDER BY l.resource_id
    LIMIT $1
    FOR UPDATE OF l SKIP LOCKED
)
SELECT resource_id, attempt_id, token_hash, owner_id, stream, seq, ready_at, started_at, heartbeat_at, expires_at,
       timeout_at, claim_version, attempt_no, failed, lost, released, max_attempts, cancel_requested, unique_key, now
FROM locked
ORDER BY resource_id;
