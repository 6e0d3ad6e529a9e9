-- What the inbox and the questions between azollas keep beside their artifacts.

-- Of a visitor's token: the azolla of another instance that asks with it.
ALTER TABLE tokens ADD COLUMN azolla_id TEXT;

-- A MANIFEST_REQUESTED is about its azolla; who asked is beside it. Events of earlier versions have the request as their
-- resource_id, and stay as they are.
ALTER TABLE events ADD COLUMN request_id TEXT;
-- The workorder whose run failed, where the built-in rules are asked in its place.
ALTER TABLE events ADD COLUMN stands_in_for TEXT;
CREATE UNIQUE INDEX events_by_request ON events (request_id) WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX events_standing_in ON events (stands_in_for) WHERE stands_in_for IS NOT NULL;

-- How many artifacts an azolla answered with, of which the stored response keeps a bounded part; NULL: an earlier version
-- kept none.
ALTER TABLE queries ADD COLUMN results_told INTEGER;
CREATE INDEX queries_of_azolla ON queries (azolla_id, created_at, query_id);
