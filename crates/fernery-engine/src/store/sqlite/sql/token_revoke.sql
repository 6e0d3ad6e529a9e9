UPDATE tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE token_id = ?1
