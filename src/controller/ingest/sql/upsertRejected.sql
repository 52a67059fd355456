-- Refused input, once for each content. Over the cap everything new is counted in one row.
-- $1 cluster_id, $2 hash as hex, $3 queue, $4 reason, $5 error, $6 claimed_node, $7 bytes, $8 head as hex, $9 cap
WITH slot AS (
  SELECT CASE
    WHEN EXISTS (SELECT FROM store.rejected WHERE cluster_id = $1::int2 AND hash = decode($2, 'hex'))
      OR (SELECT count(*) FROM store.rejected WHERE cluster_id = $1::int2) < $9::int4 THEN decode($2, 'hex')
    ELSE '\x'::bytea END AS hash
)
INSERT INTO store.rejected (cluster_id, hash, at, last_at, queue, reason, error, claimed_node, bytes, head)
SELECT $1::int2, hash, now(), now(), $3::int4, CASE WHEN hash = '' THEN 'over_the_cap' ELSE $4::text END, $5::text,
       CASE WHEN hash = '' THEN '' ELSE $6::text END, $7::int4, decode($8, 'hex')
FROM slot
ON CONFLICT (cluster_id, hash) DO UPDATE SET times = rejected.times + 1, last_at = now()
