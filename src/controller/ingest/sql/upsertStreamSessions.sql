-- Every record of a session repeats what is known of it: in any order the row ends up the same.
-- $1 cluster_id, then arrays: node_id, context_id, epoch, seq, session_no, opened, armed, closed (microseconds since 1970),
-- code, message, events, replayed
WITH latest AS (
  SELECT DISTINCT ON (u.node_id, u.session_no) u.*, timestamptz 'epoch' + u.opened * interval '1 microsecond' AS opened_at
  FROM unnest($2::int4[], $3::int4[], $4::uuid[], $5::int4[], $6::int4[], $7::int8[], $8::int8[], $9::int8[], $10::text[], $11::text[], $12::int8[], $13::int8[])
    AS u (node_id, context_id, epoch, seq, session_no, opened, armed, closed, code, message, events, replayed)
  ORDER BY u.node_id, u.session_no, u.seq DESC
)
INSERT INTO store.stream_session (node_id, epoch, session_no, day, cluster_id, context_id, seq, opened_at, armed_at, closed_at, code,
                                  message, events, replayed)
SELECT node_id, epoch, session_no, (opened_at AT TIME ZONE 'UTC')::date, $1::int2, context_id, seq, opened_at,
       timestamptz 'epoch' + armed * interval '1 microsecond', timestamptz 'epoch' + closed * interval '1 microsecond',
       code, message, events, replayed
FROM latest
ON CONFLICT (node_id, epoch, session_no, day) DO UPDATE SET
  context_id = CASE WHEN excluded.seq > stream_session.seq THEN excluded.context_id ELSE stream_session.context_id END,
  seq = greatest(stream_session.seq, excluded.seq),
  armed_at = coalesce(stream_session.armed_at, excluded.armed_at),
  closed_at = coalesce(stream_session.closed_at, excluded.closed_at),
  code = coalesce(stream_session.code, excluded.code),
  message = coalesce(stream_session.message, excluded.message),
  events = greatest(stream_session.events, excluded.events),
  replayed = greatest(stream_session.replayed, excluded.replayed)
