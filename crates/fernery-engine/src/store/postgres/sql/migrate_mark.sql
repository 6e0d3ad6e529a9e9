-- Says that a migration was applied.
INSERT INTO fernery.schema_version (version, applied_at) VALUES ($1, clock_timestamp());
