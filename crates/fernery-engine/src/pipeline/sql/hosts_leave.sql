-- A process hosts nothing any more; with $2, no process does.
DELETE FROM hosts WHERE owner = $1 OR $2
RETURNING azolla_id;
