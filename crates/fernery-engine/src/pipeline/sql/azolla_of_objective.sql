-- The blueprint in force where an objective is.
SELECT a.blueprint FROM objectives o JOIN azollas a ON a.azolla_id = o.azolla_id WHERE o.objective_id = $1;
