-- Up to which instant the schedule of an azolla was looked at, and which schedule that was.
SELECT fired_at, schedule FROM fires WHERE azolla_id = $1;
