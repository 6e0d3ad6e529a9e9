-- The digest of the blueprint that is in force for one azolla.
SELECT blueprint FROM azollas WHERE azolla_id = $1;
