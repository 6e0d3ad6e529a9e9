-- The azollas of which azolla $1 watches objectives.
SELECT DISTINCT source_azolla_id FROM deadlines WHERE azolla_id = $1;
