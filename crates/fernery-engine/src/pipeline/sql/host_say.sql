-- A process says that it hosts an azolla, and with which repositories.
INSERT INTO hosts (owner, azolla_id, repos, said_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (azolla_id, owner) DO UPDATE SET repos = $3, said_at = $4
RETURNING azolla_id;
