-- The seal at one place of the chain.
SELECT place, hash FROM seals WHERE place = $1;
