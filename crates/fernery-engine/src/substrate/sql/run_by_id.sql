SELECT document, evidence FROM runs WHERE run_id = $1;
