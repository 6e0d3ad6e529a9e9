-- Opens those of the streams $1 that are new, for the token $2: all of them, or none if there would be more than $3 in all or
-- $4 of that token. Answers one that is new, and which limit stands in the way.
WITH new AS MATERIALIZED (
    SELECT DISTINCT a.name
    FROM unnest($1::text[]) AS a(name)
    WHERE NOT EXISTS (SELECT FROM fernery.streams s WHERE s.name = a.name)
      AND NOT EXISTS (SELECT FROM fernery.stream_deltas d WHERE d.stream = a.name)
), counted AS MATERIALIZED (
    SELECT (SELECT count(*) FROM new) AS new,
           (SELECT count(*) FROM (SELECT FROM fernery.streams LIMIT $3::bigint) s) AS in_all,
           (SELECT count(*) FROM (SELECT FROM fernery.streams WHERE opened_by = $2::text LIMIT $4::bigint) s) AS of_token
), verdict AS MATERIALIZED (
    SELECT CASE WHEN new = 0 THEN NULL
                WHEN in_all + new > $3::bigint THEN 'in_all'
                WHEN $2::text IS NOT NULL AND of_token + new > $4::bigint THEN 'of_token'
           END AS full_by
    FROM counted
), opened AS (
    INSERT INTO fernery.streams (name, opened_by)
    SELECT new.name, $2::text FROM new, verdict WHERE verdict.full_by IS NULL ORDER BY new.name
    ON CONFLICT (name) DO NOTHING
)
SELECT (SELECT min(name) FROM new), full_by FROM verdict;
