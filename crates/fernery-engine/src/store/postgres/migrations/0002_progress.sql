-- How far the holder of a lease says it is.
ALTER TABLE fernery.leases ADD COLUMN percent smallint, ADD COLUMN note text;
