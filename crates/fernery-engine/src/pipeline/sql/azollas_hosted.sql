-- When a process last recorded that it hosts each azolla.
SELECT azolla_id, hosted_at FROM azollas ORDER BY azolla_id;
