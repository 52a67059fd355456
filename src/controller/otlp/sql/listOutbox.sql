-- The oldest $2 records in the outbox of cluster $1, verdicts $3 milliseconds after they were added. at: microseconds since 1970. record: the row of
-- the view findings, mode_changes or pleg_verdicts; null, like at, where it was deleted since.
SELECT o.outbox_id, o.what, c.uid AS cluster_uid, (extract(epoch FROM coalesce(f.at, m.at, v.at)) * 1000000)::int8 AS at,
       coalesce(f.record, m.record, v.record) AS record
FROM (
  -- A resolution names its finding by the id that an agent gave, which many may have: one of them is sent. OFFSET 0 makes columns of the keys, and
  -- only columns are looked up by an index.
  SELECT q.outbox_id, q.cluster_id, q.node_id, q.what, q.at, q.ended_at, coalesce(r.context_id, q.context_id) AS context_id, coalesce(r.seq, q.seq) AS seq,
         coalesce(r.day, q.day) AS day
  FROM (
    SELECT * FROM store.otlp_outbox
    WHERE cluster_id = $1::int2 AND (what <> 'pleg_verdict' OR added_at <= now() - $3::int4 * interval '1 millisecond')
    ORDER BY outbox_id LIMIT $2::int4
  ) q
  LEFT JOIN LATERAL (
    SELECT r.context_id, r.seq, r.day FROM store.finding r WHERE r.node_id = q.node_id AND r.finding_id = q.finding_id LIMIT 1
  ) r ON true
  OFFSET 0
) o
JOIN store.cluster c ON c.cluster_id = o.cluster_id
LEFT JOIN LATERAL (
  SELECT CASE o.what WHEN 'finding' THEN d.detected_at ELSE d.resolved_at END AS at,
         to_jsonb(d) - '{node_id,cluster_id,day,context_id}'::text[] AS record
  FROM store.finding_detail d
  WHERE d.node_id = o.node_id AND d.context_id = o.context_id AND d.seq = o.seq AND d.day = o.day
) f ON true
LEFT JOIN LATERAL (
  SELECT t.at, to_jsonb(v) AS record
  FROM store.mode_change t
  JOIN store.node n ON n.node_id = t.node_id
  JOIN store.context x ON x.context_id = t.context_id
  CROSS JOIN LATERAL (
    SELECT c.name AS cluster, n.name AS node, t.not_before, t.at, t.model, t.from_mode, t.to_mode, nullif(t.reason, '') AS reason,
           t.proof, x.epoch, t.seq, nullif(x.kubelet_version, '') AS kubelet_version
  ) v
  WHERE t.node_id = o.node_id AND t.context_id = o.context_id AND t.seq = o.seq AND t.day = o.day
) m ON true
LEFT JOIN LATERAL (
  SELECT d.to_at AS at, jsonb_build_object('cluster', c.name, 'node', n.name) || (to_jsonb(d) - '{node_id,cluster_id}'::text[]) AS record
  FROM store.pleg_verdict d JOIN store.node n ON n.node_id = d.node_id
  WHERE d.node_id = o.node_id AND d.day = o.day AND d.at = o.at AND d.to_at = o.ended_at LIMIT 1
) v ON o.what = 'pleg_verdict'
ORDER BY o.outbox_id
