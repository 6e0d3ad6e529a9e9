-- A process ends in good order.
DELETE FROM fernery.processes WHERE process_id = $1;
