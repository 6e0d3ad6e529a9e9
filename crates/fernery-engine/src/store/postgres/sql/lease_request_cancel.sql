-- Asks the holder to end it, only where the lease is still the one that was read.
UPDATE fernery.leases SET cancel_requested = true, claim_version = claim_version + 1
WHERE resource_id = $1 AND claim_version = $2;
