-- Sets whether viewers do not see what the jobs of a stream hold. Answers nothing where it is so already.
UPDATE streams SET redact = $2 WHERE name = $1 AND redact <> $2
RETURNING name;
