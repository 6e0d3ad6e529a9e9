-- Makes a stream that is not there, used at $2.
INSERT INTO streams (name, used_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING
RETURNING name;
