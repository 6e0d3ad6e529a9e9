SELECT azolla_id, blueprint, updated_at FROM azollas ORDER BY azolla_id;
