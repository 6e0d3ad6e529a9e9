-- A reviewer has viewed this content of a file.
INSERT INTO viewed_files (objective_id, reviewer, path, content) VALUES ($1, $2, $3, $4)
ON CONFLICT (objective_id, reviewer, path) DO UPDATE SET content = $4
RETURNING path;
