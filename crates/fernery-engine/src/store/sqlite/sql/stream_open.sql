-- A stream that is about to be used for the first time, by the token ?2.
INSERT INTO streams (name, opened_by, used_at) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING
