-- What a connection that was set up as the server's is has in force.
SELECT (SELECT synchronous FROM pragma_synchronous), (SELECT journal_size_limit FROM pragma_journal_size_limit)
