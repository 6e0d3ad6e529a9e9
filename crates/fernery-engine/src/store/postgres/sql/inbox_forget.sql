-- Rows of the inbox that are jobs now.
DELETE FROM fernery.inbox WHERE inbox_id = ANY ($1::bigint[]);
