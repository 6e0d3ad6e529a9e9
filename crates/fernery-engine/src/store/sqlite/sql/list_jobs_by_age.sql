-- Jobs in the order in which they were stored: retention goes along it. The last column: it is a dead letter.
SELECT rowid, job_id, created_at, ended IS 'DEAD' FROM jobs WHERE rowid > ?1 ORDER BY rowid LIMIT ?2
