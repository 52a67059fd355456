-- Every record of a session repeats what is known of it: in any order the row ends up the same.
-- $1 node_id, $2 ctx_id, $3 cluster_id, $4 epoch, then arrays: seq, session, opened, armed, closed (microseconds since 1970),
-- code, message, events, replayed
WITH told AS (
  SELECT DISTINCT ON (u.session_no) u.*, timestamptz 'epoch' + u.opened * interval '1 microsecond' AS opened_at
  FROM unnest($5::int4[], $6::int4[], $7::int8[], $8::int8[], $9::int8[], $10::text[], $11::text[], $12::int8[], $13::int8[])
    AS u (seq, session_no, opened, armed, closed, code, message, events, replayed)
  ORDER BY u.session_no, u.seq DESC
)
INSERT INTO store.session (node_id, epoch, session_no, day, cluster_id, ctx_id, seq, opened_at, armed_at, closed_at, code,
                           message, events, replayed)
SELECT $1::int4, $4::uuid, session_no, (opened_at AT TIME ZONE 'UTC')::date, $3::int2, $2::int4, seq, opened_at,
       timestamptz 'epoch' + armed * interval '1 microsecond', timestamptz 'epoch' + closed * interval '1 microsecond',
       code, message, events, replayed
FROM told
ON CONFLICT (node_id, epoch, session_no, day) DO UPDATE SET
  ctx_id = CASE WHEN excluded.seq > session.seq THEN excluded.ctx_id ELSE session.ctx_id END,
  seq = greatest(session.seq, excluded.seq),
  armed_at = coalesce(session.armed_at, excluded.armed_at),
  closed_at = coalesce(session.closed_at, excluded.closed_at),
  code = coalesce(session.code, excluded.code),
  message = coalesce(session.message, excluded.message),
  events = greatest(session.events, excluded.events),
  replayed = greatest(session.replayed, excluded.replayed)
