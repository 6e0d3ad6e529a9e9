-- Stores the histograms of a row that this transaction has locked.
UPDATE stream_stats SET waits = $4, runs = $5 WHERE stream = $1 AND minutes = $2 AND at = $3
RETURNING stream;
