-- From now on, what this connection makes claimable is put into the outbox as well.
SELECT set_config('fernery.transport', 'on', false);
