-- Records that a process hosts an azolla now.
UPDATE azollas SET hosted_at = $2 WHERE azolla_id = $1
RETURNING azolla_id;
