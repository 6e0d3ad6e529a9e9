-- One run record, with the evidence of its gates.
SELECT document, evidence FROM runs WHERE run_id = $1;
