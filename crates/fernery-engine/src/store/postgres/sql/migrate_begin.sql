-- Opens the transaction of a migration: one process at a time migrates, the others wait for it and find nothing to do.
BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = '60s';
SELECT pg_advisory_xact_lock(7307199706213905);
CREATE SCHEMA IF NOT EXISTS fernery;
CREATE TABLE IF NOT EXISTS fernery.schema_version (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL
);
