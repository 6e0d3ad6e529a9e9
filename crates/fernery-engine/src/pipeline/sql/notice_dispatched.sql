-- Marks a notice as dispatched; no row if another process was faster.
UPDATE notices SET dispatched = true WHERE notice_id = $1 AND NOT dispatched RETURNING notice_id;
