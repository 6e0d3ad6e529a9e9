-- When a process last said that it hosts each.
SELECT azolla_id, hosted_at FROM azollas ORDER BY azolla_id;
