DELETE FROM claims
RETURNING resource_id;
