-- What azolla $1 watches of one objective of azolla $2, locked until the transaction ends.
SELECT urgency, due_at, since, deadline, told FROM deadlines
WHERE azolla_id = $1 AND source_azolla_id = $2 AND objective_id = $3 FOR UPDATE;
