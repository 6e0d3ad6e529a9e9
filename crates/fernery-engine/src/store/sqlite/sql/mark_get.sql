-- A number that the store keeps under a name, as `seq`, the first place that no process has reserved.
SELECT value FROM marks WHERE name = ?1
