-- Another azolla may have written pauses about it, or about one of the same name elsewhere: those are its own.
SELECT p.document FROM pauses p JOIN objectives o ON o.objective_id = p.objective_id AND o.azolla_id = p.azolla_id
WHERE p.objective_id = $1
ORDER BY p.created_at, p.pause_key;
