-- Whether an id is taken, and by what content.
SELECT content_hash FROM jobs WHERE job_id = ?1
