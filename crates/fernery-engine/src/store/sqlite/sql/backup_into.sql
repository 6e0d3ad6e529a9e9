-- A compact copy of one snapshot, in a file that is empty or not there.
VACUUM INTO ?1
