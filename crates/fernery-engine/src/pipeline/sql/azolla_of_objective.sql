-- The digest of the blueprint in force in the azolla of an objective.
SELECT a.blueprint FROM objectives o JOIN azollas a ON a.azolla_id = o.azolla_id WHERE o.objective_id = $1;
