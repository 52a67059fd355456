-- The one that listOutbox.sql would return alone: cluster $1, verdicts $2 milliseconds after they were added.
DELETE FROM store.otlp_outbox
WHERE cluster_id = $1::int2 AND outbox_id = (
  SELECT outbox_id FROM store.otlp_outbox
  WHERE cluster_id = $1::int2 AND (what <> 'pleg_verdict' OR added_at <= now() - $2::int4 * interval '1 millisecond')
  ORDER BY outbox_id LIMIT 1
)
