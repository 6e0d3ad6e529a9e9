-- After a restore: versions of $3 rows from the id $2 on go on from where nobody can have been since the backup.
WITH batch AS MATERIALIZED (
    SELECT resource_id FROM fernery.leases WHERE resource_id >= $2 ORDER BY resource_id LIMIT $3 FOR UPDATE
), raised AS (
    UPDATE fernery.leases t SET claim_version = t.claim_version + $1 FROM batch b WHERE t.resource_id = b.resource_id
)
SELECT resource_id FROM batch ORDER BY resource_id DESC LIMIT 1;
