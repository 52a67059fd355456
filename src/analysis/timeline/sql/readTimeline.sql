-- The timeline of the node $2 of the cluster $1 from $3 to $4.
SELECT t.at, t.until, t.kind, t.what, t.pod, t.container, t.container_id, t.detail, t.epoch, t.seq
FROM plegwatch.timeline($1, $2, $3, $4) AS t;
