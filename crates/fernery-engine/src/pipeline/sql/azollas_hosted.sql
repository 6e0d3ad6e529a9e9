-- When a process last recorded that it hosts each azolla, ever and among those that still say so.
SELECT a.azolla_id, a.hosted_at, (SELECT max(h.said_at) FROM hosts h WHERE h.azolla_id = a.azolla_id) AS said_at
FROM azollas a ORDER BY a.azolla_id;
