-- The state of a day (UTC) of a cluster.
-- $1 cluster, $2 the day
--   complete  every record of the day that an agent wrote is stored or declared lost. An epoch that is given up has ended. A minute of relists is of
--             the day on which it began, and is written when it ends, which may be ten minutes later
--   state     changes when records of the day were stored since it was last read; it may also change without that
--   records   how many records its epochs have: fewer than before in a database that was restored, or emptied. Epochs that had long ended do not count:
--             retention deletes them
WITH day AS (
  SELECT $2::date::timestamp AT TIME ZONE 'UTC' AS from_at, ($2::date + 1)::timestamp AT TIME ZONE 'UTC' AS to_at
), seen AS (
  SELECT e.node, e.epoch, e.records_lost, e.records_stored, coalesce(e.complete_through >= d.to_at + interval '15 minutes', false) AS is_through,
         e.ended_at IS NOT NULL AND e.end_cause <> 'superseded' AS is_closed, e.ended_at < d.from_at AS is_before,
         e.ended_at < d.from_at - interval '30 days' AS is_long_before
  FROM plegwatch.epochs e, day d
  WHERE e.cluster = $1 AND e.started_at < d.to_at
)
SELECT coalesce(bool_and(is_through OR is_closed), true) AS complete,
       encode(sha256(coalesce(string_agg(concat_ws(' ', node, epoch, records_lost, CASE WHEN NOT is_through THEN records_stored END), ','
                                         ORDER BY node COLLATE "C", epoch) FILTER (WHERE NOT (is_closed AND is_before)), '')::bytea), 'hex') AS state,
       coalesce(sum(records_stored) FILTER (WHERE NOT (is_closed AND is_long_before)), 0)::int8 AS records
FROM seen
