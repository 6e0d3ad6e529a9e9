-- Ends a lease for one who holds no token, only where it is still the one that was read.
DELETE FROM leases WHERE resource_id = ?1 AND claim_version = ?2 AND attempt_id IS NOT NULL
