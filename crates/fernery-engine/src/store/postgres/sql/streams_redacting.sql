-- Those of the streams $1 whose jobs hold what viewers do not see.
SELECT name FROM fernery.streams WHERE name = ANY ($1::text[]) AND redact;
