-- What the executor of a workorder is told.
SELECT document FROM snapshots WHERE snapshot_id = $1;
