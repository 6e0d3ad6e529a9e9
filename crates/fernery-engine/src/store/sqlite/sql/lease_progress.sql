-- Keeps how far the holder says it is: under its token, and never back.
UPDATE leases
SET percent = ?3, note = ?4, claim_version = claim_version + 1
WHERE resource_id = ?1 AND token_hash = ?2 AND coalesce(percent, 0) <= ?3
