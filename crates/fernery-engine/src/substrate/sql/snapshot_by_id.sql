SELECT document FROM snapshots WHERE snapshot_id = $1;
