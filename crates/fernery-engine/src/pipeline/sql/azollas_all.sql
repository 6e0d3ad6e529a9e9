-- All azollas with the digests of their blueprints in force, by id.
SELECT azolla_id, blueprint, updated_at FROM azollas ORDER BY azolla_id;
