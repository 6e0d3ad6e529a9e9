-- Transactions that were prepared and neither committed nor rolled back.
SELECT count(*) AS prepared,
       coalesce(extract(epoch FROM max(clock_timestamp() - prepared)), 0)::double precision AS oldest_seconds
FROM pg_prepared_xacts
WHERE database = current_database();
