-- The captures that one candidate was made of, oldest first.
SELECT c.capture_id, c.azolla_id, c.raw_content, c.source_label, c.status, c.created_at, c.updated_at, c.raw_hex, c.ready_at,
       c.tries, c.work_order_id, c.held
FROM candidate_captures k JOIN captures c ON c.capture_id = k.capture_id
WHERE k.candidate_id = $1
ORDER BY c.created_at, c.capture_id;
