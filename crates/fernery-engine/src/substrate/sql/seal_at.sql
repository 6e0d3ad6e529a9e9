SELECT place, hash FROM seals WHERE place = $1;
