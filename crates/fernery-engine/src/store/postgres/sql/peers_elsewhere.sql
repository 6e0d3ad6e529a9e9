-- Whether a process that said within $2 ms that it is there sends its messages to another place than $1.
SELECT EXISTS (
    SELECT FROM fernery.processes
    WHERE seen_at > fernery.fernery_now() - $2::bigint * interval '1 millisecond'
      AND transport <> 'none' AND left(transport, length($1::text) + 1) <> $1::text || ' '
);
