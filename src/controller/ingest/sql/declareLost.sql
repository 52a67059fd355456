-- Records seqs that the epoch itself declares lost: its holes, and everything below the oldest seq of its spool that is not stored
-- (the database was restored from a backup). Only what is not known yet becomes a gap. That behind the last stored record of an ended epoch reaches
-- to the next agent's start: a probe of it is sealed at its start. Returns how many holes there are, and what they are if they are more than the
-- node may store rows for: then they have none yet.
-- $1 node_id, $2 epoch, $3 oldest seq, $4 when the batch was sealed (microseconds since 1970), then arrays: from, to, cause; $8 the highest
-- seq that is believed to exist, $9 how many rows the node may still store
WITH e AS (
  SELECT * FROM store.epoch WHERE node_id = $1::int4 AND epoch = $2::uuid
), declared AS (
  SELECT i, int4multirange(int4range(f, t, '[]')) AS r, cause
  FROM unnest($5::int4[], $6::int4[], $7::text[]) WITH ORDINALITY AS u (f, t, cause, i)
  UNION ALL
  SELECT 1000000, int4multirange(int4range(1, $3::int4)), 'store_lost'
), fresh AS (
  SELECT r * int4multirange(int4range(1, $8::int4, '[]')) - e.received - e.lost
           - coalesce(range_agg(r) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), '{}') AS r, cause
  FROM declared, e
), hole AS (
  SELECT r, cause, least(CASE WHEN is_last THEN e.last_record_at ELSE e.started_at END, to_at) AS from_at, to_at
  FROM e, (SELECT unnest(r) AS r, cause FROM fresh) AS lost,
       LATERAL (SELECT upper(e.received) <= lower(r) AS is_last) AS place,
       LATERAL (SELECT CASE WHEN coalesce(is_last, true) THEN min(started_at) END AS next_at FROM store.epoch
                WHERE node_id = e.node_id AND incarnation > e.incarnation) AS next,
       LATERAL (SELECT least(now(), greatest(timestamptz 'epoch' + $4::int8 * interval '1 microsecond', e.last_record_at, next_at)) AS to_at) AS sealed
), gap AS (
  INSERT INTO store.gap (gap_id, node_id, cluster_id, epoch, scope, cause, from_at, to_at, from_seq, to_seq, records)
  SELECT md5($2::text || ':' || lower(r) || ':' || upper(r) - 1)::uuid, e.node_id, e.cluster_id, e.epoch, 'seq', cause, from_at, to_at,
         lower(r), upper(r) - 1, upper(r) - lower(r)
  FROM hole, e
  WHERE (SELECT count(*) FROM hole) <= $9::int4
  ON CONFLICT DO NOTHING
)
UPDATE store.epoch
SET lost = epoch.lost + (SELECT range_agg(r) FROM hole)
WHERE node_id = $1::int4 AND epoch = $2::uuid AND EXISTS (SELECT FROM hole)
RETURNING (SELECT count(*)::int4 FROM hole) AS holes,
          (SELECT range_agg(r) FROM hole HAVING count(*) > $9::int4) AS surplus,
          (SELECT (extract(epoch FROM min(from_at)) * 1000000)::float8 FROM hole) AS "from"
