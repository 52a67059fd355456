-- Enrols a key of a node until its token expires, but at most for a day, since some tokens are valid for years. An enrolment that is older
-- than what is known changes nothing, and neither does one whose token has expired. Also deletes the node's expired keys and, but for the two that
-- are valid the longest, its other ones. Returns for how many seconds the key is valid now; no row if it is not.
-- The key is also kept with the controller's signature under it, beside the 999 latest others: a node that is set up anew has another key, and findings are kept long.
-- $1 cluster_id, $2 node, $3 public key, $4 expires_at in seconds, $5 pod_uid, $6 node_uid or '', $7 the controller's signature
WITH node AS (
  SELECT node_id, least(to_timestamp($4::float8), now() + interval '24 hours') AS expires_at
  FROM store.node WHERE cluster_id = $1::int2 AND name = $2::text
), others AS (
  SELECT k.node_id, k.public_key, k.expires_at <= now() OR row_number() OVER (ORDER BY k.expires_at DESC) > 2 AS is_old
  FROM store.node_key k JOIN node USING (node_id)
  WHERE k.public_key <> $3::bytea
), deleted AS (
  DELETE FROM store.node_key k USING others o WHERE k.node_id = o.node_id AND k.public_key = o.public_key AND o.is_old
), enrolled AS (
  INSERT INTO store.node_key AS k (node_id, cluster_id, public_key, enrolled_at, expires_at, pod_uid, node_uid)
  SELECT node_id, $1::int2, $3::bytea, now(), expires_at, $5::text, nullif($6::text, '')
  FROM node WHERE expires_at > now()
  ON CONFLICT (node_id, public_key) DO UPDATE SET
    enrolled_at = excluded.enrolled_at, expires_at = excluded.expires_at, pod_uid = excluded.pod_uid, node_uid = excluded.node_uid
  WHERE k.expires_at < excluded.expires_at
  RETURNING expires_at
), signer AS (
  INSERT INTO store.node_signer AS s (node_id, cluster_id, public_key, signature)
  SELECT node_id, $1::int2, $3::bytea, $7::bytea FROM node WHERE expires_at > now()
  ON CONFLICT (node_id, public_key) DO UPDATE SET signature = excluded.signature, enrolled_at = excluded.enrolled_at
), former AS (
  DELETE FROM store.node_signer s USING (
    SELECT o.node_id, o.public_key, row_number() OVER (ORDER BY o.enrolled_at DESC) AS place
    FROM store.node_signer o JOIN node USING (node_id) WHERE o.public_key <> $3::bytea) o
  WHERE s.node_id = o.node_id AND s.public_key = o.public_key AND o.place > 999
), known AS (
  SELECT expires_at FROM enrolled
  UNION ALL
  SELECT k.expires_at FROM store.node_key k JOIN node USING (node_id) WHERE k.public_key = $3::bytea
)
SELECT floor(extract(epoch FROM max(expires_at) - now()))::int4 AS valid_for FROM known HAVING max(expires_at) > now()
