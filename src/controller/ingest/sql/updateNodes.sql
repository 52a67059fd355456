-- Marks nodes as seen, and counts their rows of the day; the latest incarnation and context win. An agent of an earlier machine of the same name says
-- nothing of when this one was seen.
-- Arrays, one entry for each node: $1 node_id, $2 incarnation, $3 context_no, $4 context_id, $5 epoch, $6 rows, $7 whether the node signed its batch
UPDATE store.node n SET
  first_seen = CASE WHEN e.last_seen < n.replaced_at THEN n.first_seen ELSE coalesce(n.first_seen, now()) END,
  last_seen = CASE WHEN e.last_seen < n.replaced_at THEN n.last_seen ELSE greatest(n.last_seen, e.last_seen) END,
  last_unsigned_at = CASE WHEN u.is_signed THEN n.last_unsigned_at ELSE now() END,
  incarnation = greatest(n.incarnation, u.incarnation),
  context_no = CASE WHEN (n.incarnation, n.context_no) <= (u.incarnation, u.context_no) THEN u.context_no ELSE n.context_no END,
  context_id = CASE WHEN (n.incarnation, n.context_no) <= (u.incarnation, u.context_no) THEN u.context_id ELSE n.context_id END,
  rows_day = (now() AT TIME ZONE 'UTC')::date,
  day_rows = CASE WHEN n.rows_day = (now() AT TIME ZONE 'UTC')::date THEN n.day_rows ELSE 0 END + u.rows
FROM unnest($1::int4[], $2::int4[], $3::int4[], $4::int4[], $5::uuid[], $6::int4[], $7::bool[])
  AS u (node_id, incarnation, context_no, context_id, epoch, rows, is_signed)
JOIN store.epoch e ON e.node_id = u.node_id AND e.epoch = u.epoch
WHERE n.node_id = u.node_id
