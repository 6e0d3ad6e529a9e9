-- One capture.
SELECT capture_id, azolla_id, raw_content, source_label, status, created_at, updated_at, raw_hex, ready_at, tries, work_order_id,
       held
FROM captures WHERE capture_id = $1;
