-- The stream $1 was lost while its jobs were being told of again: once more, from the front.
UPDATE fernery.reemissions SET next_place = 0 WHERE stream = $1;
