-- On each day from $2 to $3: of how many nodes in the clusters $1, null for all, an agent read the metrics of the kubelet.
SELECT (d.day AT TIME ZONE 'UTC')::date AS day,
       (SELECT count(DISTINCT e.node_id) FROM store.epoch e JOIN store.cluster c ON c.cluster_id = e.cluster_id
        WHERE e.kubelet_seen_from < d.day + interval '24 hours' AND e.kubelet_seen_to >= d.day
          AND ($1::text[] IS NULL OR c.name = ANY ($1)))::int4 AS nodes
FROM generate_series(date_trunc('day', $2::timestamptz, 'UTC'), $3::timestamptz - interval '1 microsecond', interval '24 hours') AS d (day)
ORDER BY 1;
