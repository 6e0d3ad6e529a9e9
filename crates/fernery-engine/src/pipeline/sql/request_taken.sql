-- The event that has this request, of whatever type it is.
SELECT event_id FROM events WHERE request_id = $1;
