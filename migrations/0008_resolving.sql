-- Misses are taken back across the lives of an agent: by the event of another life, whichever of the two is stored first.

-- An event finds the misses of its id. They are few beside everything else that is found, and of most nodes there are none.
CREATE INDEX finding_missed ON store.finding (node_id, container_id, event_type) WHERE kind = 'missed';

-- One finding may be resolved by several events, which arrive in any order: the earliest counts, on one day as well as on two.
DROP INDEX store.finding_update_once;
CREATE UNIQUE INDEX finding_update_once ON store.finding_update (node_id, finding_id, what, at, day);
