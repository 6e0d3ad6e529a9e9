-- Dead jobs, newest id first.
SELECT job_id FROM dead_letters WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
