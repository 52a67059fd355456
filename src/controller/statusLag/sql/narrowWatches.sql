-- A finding may bound its transition more closely than the overdue event did.
-- $1 node_id, then arrays: finding_id, latest and earliest (microseconds since 1970)
UPDATE store.status_lag_watch w
SET latest_at = least(w.latest_at, timestamptz 'epoch' + u.latest * interval '1 microsecond'),
    earliest_at = coalesce(timestamptz 'epoch' + u.earliest * interval '1 microsecond', w.earliest_at)
FROM unnest($2::uuid[], $3::int8[], $4::int8[]) AS u (finding_id, latest, earliest)
WHERE w.node_id = $1::int4 AND w.finding_id = u.finding_id AND w.kind = 'overdue'
