SELECT stream, newest_ms, newest_n FROM fernery.relayed ORDER BY stream;
