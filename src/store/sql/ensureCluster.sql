-- The id of a cluster, which is added when it is first seen. No row is returned while another transaction adds it. $1 name
WITH made AS (
  INSERT INTO store.cluster (name)
  SELECT $1::text WHERE NOT EXISTS (SELECT FROM store.cluster WHERE name = $1)
  ON CONFLICT (name) DO NOTHING
  RETURNING cluster_id
)
SELECT cluster_id FROM made
UNION ALL
SELECT cluster_id FROM store.cluster WHERE name = $1
