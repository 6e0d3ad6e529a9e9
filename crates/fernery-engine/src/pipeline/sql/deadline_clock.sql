-- Since when the urgency of one watched objective counts; no row if it is not watched.
SELECT urgency, due_at, since FROM deadlines WHERE azolla_id = $1 AND source_azolla_id = $2 AND objective_id = $3;
