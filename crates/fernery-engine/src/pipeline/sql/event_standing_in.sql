-- Where the built-in rules are asked in place of a workorder that failed.
SELECT event_id, type, resource_id, azolla_id, created_at, processed, claim_version, reason, work_order_id
FROM events WHERE stands_in_for = $1;
