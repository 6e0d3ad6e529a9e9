-- The one clock.
SELECT fernery.fernery_now();
