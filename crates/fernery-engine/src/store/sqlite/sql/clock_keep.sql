-- Keeps the newest instant that was ever current, with where in the life of the machine it was read.
INSERT INTO marks (name, value) VALUES ('clock', ?1), ('clock_boot', ?2), ('clock_up', ?3), ('clock_doubt', ?4)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
