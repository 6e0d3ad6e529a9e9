-- A blueprint that is or was in force, by its digest.
SELECT document FROM blueprints WHERE blueprint = $1;
