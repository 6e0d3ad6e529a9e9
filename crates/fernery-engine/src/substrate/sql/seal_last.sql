SELECT place, hash FROM seals ORDER BY place DESC LIMIT 1;
