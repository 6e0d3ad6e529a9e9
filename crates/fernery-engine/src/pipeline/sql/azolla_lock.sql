-- The lock under which room is looked for and taken: a count alone would admit two schedulers.
SELECT azolla_id FROM azollas WHERE azolla_id = $1 FOR UPDATE;
