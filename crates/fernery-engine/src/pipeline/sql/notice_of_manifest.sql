-- Stores the notice of a manifest, if its azolla sends notices of manifests.
INSERT INTO notices (notice_id, azolla_id, kind, created_at)
SELECT m.manifest_id, m.azolla_id, 'session_manifest', m.created_at
FROM manifests m JOIN azollas a ON a.azolla_id = m.azolla_id
WHERE m.manifest_id = $1 AND a.tells LIKE '%session_manifest%'
ON CONFLICT (notice_id) DO NOTHING
RETURNING notice_id;
