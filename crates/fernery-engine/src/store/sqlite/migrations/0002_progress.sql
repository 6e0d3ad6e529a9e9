-- How far the holder of a lease says it is.
ALTER TABLE leases ADD COLUMN percent INTEGER;
ALTER TABLE leases ADD COLUMN note TEXT;
