-- The facts of an epoch for an audit of signatures: the seqs up to $3 that were never stored, whether each batch was signed, and since when its rows
-- are kept, in microseconds since the epoch began. $1 node_id, $2 epoch
SELECT CASE WHEN $3::int4 < 1 THEN '{}' ELSE int4multirange(int4range(1, $3::int4, '[]')) - e.received END AS unstored, e.is_attributed,
       (extract(epoch FROM date_trunc('day', now(), 'UTC') - kept.event_days * interval '1 day' - e.started_at) * 1000000)::float8 AS events_from,
       (extract(epoch FROM date_trunc('day', now(), 'UTC') - kept.finding_days * interval '1 day' - e.started_at) * 1000000)::float8 AS findings_from
FROM store.epoch e, (
  SELECT coalesce(max(value::int4) FILTER (WHERE key = 'event_retention_days'), 14) AS event_days,
         coalesce(max(value::int4) FILTER (WHERE key = 'finding_retention_days'), 400) AS finding_days
  FROM store.setting
) kept
WHERE e.node_id = $1 AND e.epoch = $2
