-- A page of captures of all azollas, newest first, below the place ($1, $2).
SELECT capture_id, azolla_id, raw_content, source_label, status, created_at, updated_at, raw_hex, ready_at, tries, work_order_id,
       held
FROM captures
WHERE (created_at, capture_id) < ($1, $2)
ORDER BY created_at DESC, capture_id DESC
LIMIT $3;
