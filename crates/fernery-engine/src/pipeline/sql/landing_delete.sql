-- Forgets the landing of an objective that a person has reopened or cancelled. Only under objective_lock.
DELETE FROM landings WHERE objective_id = $1
RETURNING objective_id;
