-- Notices that are not dispatched yet, oldest first, each with its artifact.
SELECT n.notice_id, n.kind, n.created_at, p.document, m.document
FROM notices n LEFT JOIN pauses p ON p.pause_key = n.notice_id LEFT JOIN manifests m ON m.manifest_id = n.notice_id
WHERE n.azolla_id = $1 AND NOT n.dispatched
ORDER BY n.created_at, n.notice_id
LIMIT $2;
