-- A gap for each record of a batch that cannot be stored, with what arrived in its place.
-- $1 node_id, $2 cluster_id, $3 epoch, $4 at (microseconds since 1970), then arrays: seq, cause, bytes as hex or null
INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records, record_bytes)
SELECT md5($3::text || ':' || u.seq || ':' || u.seq)::uuid, $1::int4, $2::int2, $3::uuid, 'seq', u.cause, t.at, t.at,
       u.seq, u.seq, 1, decode(u.bytes, 'hex')
FROM unnest($5::int4[], $6::text[], $7::text[]) AS u (seq, cause, bytes),
     (SELECT timestamptz 'epoch' + $4::int8 * interval '1 microsecond' AS at) AS t
ON CONFLICT DO NOTHING
