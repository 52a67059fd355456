-- Begins the next term of the leader of cluster $1, and waits until no statement of an earlier one is under way.
INSERT INTO store.leader AS l (cluster_id, term) VALUES ($1::int2, 1)
ON CONFLICT (cluster_id) DO UPDATE SET term = l.term + 1
RETURNING term;
