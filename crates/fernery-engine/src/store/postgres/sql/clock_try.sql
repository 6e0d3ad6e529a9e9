-- A write that changes nothing for anybody.
UPDATE fernery.clock SET tried = tried + 1 RETURNING 1;
