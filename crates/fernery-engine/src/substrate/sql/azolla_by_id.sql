SELECT blueprint FROM azollas WHERE azolla_id = $1;
