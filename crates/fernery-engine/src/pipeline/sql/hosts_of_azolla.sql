-- The repositories and the name of each process that has said since $2 that it hosts an azolla.
SELECT repos, owner FROM hosts WHERE azolla_id = $1 AND said_at > $2;
