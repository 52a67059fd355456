-- $1 node_id, $2 node_uid, $3 life, $4 ctx_no, $5 ctx_id; the latest life and context win.
UPDATE store.node SET
  last_seen = greatest(last_seen, now()),
  node_uid = CASE WHEN (life, ctx_no) <= ($3::int4, $4::int4) THEN coalesce(nullif($2::text, ''), node_uid) ELSE node_uid END,
  life = greatest(life, $3::int4),
  ctx_no = CASE WHEN (life, ctx_no) <= ($3::int4, $4::int4) THEN $4::int4 ELSE ctx_no END,
  ctx_id = CASE WHEN (life, ctx_no) <= ($3::int4, $4::int4) THEN $5::int4 ELSE ctx_id END
WHERE node_id = $1::int4
