-- The newest row of each list that pages follow, each read from the end of an index; null where a list is empty. An entry of the
-- journal that commits late may sort below the newest one; the seals stand in the order in which they were written.
SELECT (SELECT entry_id FROM journal ORDER BY created_at DESC, entry_id DESC LIMIT 1) AS entry_id,
       (SELECT max(place) FROM seals) AS sealed,
       (SELECT capture_id FROM captures ORDER BY created_at DESC, capture_id DESC LIMIT 1) AS capture_id,
       (SELECT work_order_id FROM workorders WHERE NOT judged LIMIT 1) AS active;
