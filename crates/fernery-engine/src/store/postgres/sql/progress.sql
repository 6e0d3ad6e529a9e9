-- Keeps how far holders say they are: under their token, and never back. Items come sorted by job, so that batches lock in
-- the same order.
WITH proven AS MATERIALIZED (
    SELECT l.resource_id, i.percent, i.note
    FROM unnest($1::uuid[], $2::bytea[], $3::smallint[], $4::text[]) AS i(job_id, token_hash, percent, note)
    CROSS JOIN LATERAL (
        SELECT resource_id FROM fernery.leases
        WHERE resource_id = i.job_id AND token_hash = i.token_hash AND coalesce(percent, 0) <= i.percent
        LIMIT 1 FOR UPDATE
    ) l
)
UPDATE fernery.leases l
SET percent = p.percent, note = p.note, claim_version = l.claim_version + 1
FROM proven p
WHERE l.resource_id = p.resource_id
RETURNING l.resource_id, l.token_hash;
