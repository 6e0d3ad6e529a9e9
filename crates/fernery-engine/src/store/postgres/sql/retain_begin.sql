-- Opens a pass of retention. Its search goes by ranges of pages, which takes a bitmap; every other statement goes without.
BEGIN;
SET LOCAL enable_bitmapscan = on;
