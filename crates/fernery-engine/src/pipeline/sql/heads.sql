-- How far each list has come that pages follow. A list that grows is read from the end of an index, null where it is empty; what has
-- no end to read from is summed, and is as small as what is there now: leases, paused streams, open sessions, acts under way. An entry
-- of the journal that commits late may sort below the newest one; the seals stand in the order in which they were written.
SELECT (SELECT entry_id FROM journal ORDER BY created_at DESC, entry_id DESC LIMIT 1) AS entry_id,
       (SELECT max(place) FROM seals) AS sealed,
       (SELECT capture_id FROM captures ORDER BY created_at DESC, capture_id DESC LIMIT 1) AS capture_id,
       (SELECT manifest_id FROM manifests ORDER BY created_at DESC, manifest_id DESC LIMIT 1) AS manifest_id,
       (SELECT work_order_id FROM workorders WHERE NOT judged LIMIT 1) AS active,
       (SELECT string_agg(name, ' ' ORDER BY name) FROM streams WHERE paused) AS paused,
       (SELECT string_agg(sign_in_id, ' ' ORDER BY sign_in_id) FROM sign_ins WHERE kind = 'SESSION') AS sessions,
       (SELECT string_agg(act_id || ' ' || done || ' ' || refused, ' ' ORDER BY act_id) FROM bulk_acts WHERE state = 'RUNNING') AS acts,
       (SELECT token_id FROM tokens ORDER BY created_at DESC, token_id DESC LIMIT 1) AS made,
       (SELECT token_id FROM tokens WHERE revoked_at IS NOT NULL ORDER BY revoked_at DESC, token_id DESC LIMIT 1) AS revoked,
       held.leases, held.places, held.versions
FROM (SELECT count(*) AS leases, CAST(coalesce(sum(seq), 0) AS bigint) AS places,
             CAST(coalesce(sum(claim_version), 0) AS bigint) AS versions
      FROM leases) AS held;
