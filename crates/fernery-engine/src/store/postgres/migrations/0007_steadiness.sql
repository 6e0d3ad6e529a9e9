-- When a process last said that it hosts an azolla: what nobody hosts is shown as such.
ALTER TABLE fernery.azollas ADD COLUMN hosted_at timestamptz;
CREATE INDEX blueprints_of_azolla ON fernery.blueprints (azolla_id, created_at);
