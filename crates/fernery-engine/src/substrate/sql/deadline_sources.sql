SELECT DISTINCT source_azolla_id FROM deadlines WHERE azolla_id = $1;
