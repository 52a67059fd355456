-- How many events are missed, by versions, from $2 to $3 in the clusters $1, null for all. At most $4 rows.
SELECT r.cluster, r.runtime_name AS "runtimeName", r.runtime_version AS "runtimeVersion", r.kubelet_version AS "kubeletVersion",
       r.nodes, r.decided::float8 AS decided, r.missed::float8 AS missed, r.per_million AS "perMillion",
       r.low_per_million AS "lowPerMillion", r.high_per_million AS "highPerMillion"
FROM plegwatch.miss_rate($2, $3) AS r
WHERE ($1::text[] IS NULL OR r.cluster = ANY ($1))
LIMIT $4;
