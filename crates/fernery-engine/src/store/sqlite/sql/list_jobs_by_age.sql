-- Jobs in the order in which they were stored: retention goes along it.
SELECT rowid, job_id, created_at FROM jobs WHERE rowid > ?1 ORDER BY rowid LIMIT ?2
