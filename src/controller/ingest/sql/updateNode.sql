-- Marks a node as seen; the latest incarnation and context win.
-- $1 node_id, $2 node_uid, $3 incarnation, $4 context_no, $5 context_id
UPDATE store.node SET
  last_seen = greatest(last_seen, now()),
  node_uid = CASE WHEN (incarnation, context_no) <= ($3::int4, $4::int4) THEN coalesce(nullif($2::text, ''), node_uid) ELSE node_uid END,
  incarnation = greatest(incarnation, $3::int4),
  context_no = CASE WHEN (incarnation, context_no) <= ($3::int4, $4::int4) THEN $4::int4 ELSE context_no END,
  context_id = CASE WHEN (incarnation, context_no) <= ($3::int4, $4::int4) THEN $5::int4 ELSE context_id END
WHERE node_id = $1::int4
