-- What a renewed lease tells its holder.
SELECT expires_at, cancel_requested FROM leases WHERE resource_id = ?1 AND token_hash = ?2
