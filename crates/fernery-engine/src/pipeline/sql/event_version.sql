-- Raises the version by one, if it is the one that was read and the event is still open. This locks the event: whoever
-- else takes or renews it meanwhile finds another version.
UPDATE events SET claim_version = $2 + 1 WHERE event_id = $1 AND claim_version = $2 AND NOT processed
RETURNING claim_version;
