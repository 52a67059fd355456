-- Since when cluster $1 requires signatures, and the nodes that hold that back: those that have had an agent within 24 hours and have no valid key, and
-- those of which an unsigned batch was stored within an hour. A Node that was deleted only counts for the latter: its key expires.
--   agents             how many nodes are considered
--   without_key        how many of them have no valid key
--   holding_back       how many hold it back; names: the first $2 of them
WITH agent AS (
  SELECT n.name, n.last_unsigned_at > now() - interval '1 hour' AS sent_unsigned,
         NOT EXISTS (SELECT FROM store.node_key k WHERE k.node_id = n.node_id AND k.expires_at > now()) AS lacks_key
  FROM store.node n
  LEFT JOIN store.report r ON r.node_id = n.node_id
  WHERE n.cluster_id = $1::int2
    AND (n.last_unsigned_at > now() - interval '1 hour' OR (n.last_seen > now() - interval '24 hours' AND r.node_deleted_at IS NULL))
)
SELECT c.signatures_required_since AS required_since, count(a.name)::int4 AS agents, count(*) FILTER (WHERE a.lacks_key)::int4 AS without_key,
       count(*) FILTER (WHERE a.lacks_key OR a.sent_unsigned)::int4 AS holding_back,
       coalesce((array_agg(a.name ORDER BY a.name COLLATE "C") FILTER (WHERE a.lacks_key OR a.sent_unsigned))[1:$2::int4], '{}') AS names
FROM store.cluster c LEFT JOIN agent a ON true
WHERE c.cluster_id = $1::int2
GROUP BY c.cluster_id
