-- The pauses of an objective by its own azolla. Other azollas may have pauses about it, or about an objective of the same id
-- on another server.
SELECT p.document FROM pauses p JOIN objectives o ON o.objective_id = p.objective_id AND o.azolla_id = p.azolla_id
WHERE p.objective_id = $1
ORDER BY p.created_at, p.pause_key;
