-- What the file says of itself.
SELECT (SELECT application_id FROM pragma_application_id) AS application_id,
       (SELECT user_version FROM pragma_user_version) AS user_version,
       (SELECT journal_mode FROM pragma_journal_mode) AS journal_mode,
       (SELECT page_size FROM pragma_page_size) AS page_size,
       (SELECT page_count FROM pragma_page_count) AS page_count,
       (SELECT freelist_count FROM pragma_freelist_count) AS freelist_count
