-- Something that changes with every message that anybody sends.
SELECT concat_ws('/', sum(newest_ms), sum(newest_n), count(*)) FROM fernery.relayed;
