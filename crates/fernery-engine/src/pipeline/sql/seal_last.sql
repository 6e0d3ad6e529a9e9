-- The last seal: the end of the chain.
SELECT place, hash FROM seals ORDER BY place DESC LIMIT 1;
