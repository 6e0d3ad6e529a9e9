-- Ends every claim of the process $1, which has stopped its workers: none of them writes any more.
DELETE FROM claims WHERE owner_id = $1
RETURNING resource_id;
