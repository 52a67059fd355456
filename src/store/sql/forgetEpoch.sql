-- Forgets an epoch with everything that came with it, as if nothing of it had ever arrived. $1 node_id, $2 epoch
WITH contexts AS (
  SELECT context_id FROM store.context WHERE node_id = $1::int4 AND epoch = $2::uuid
), own AS (
  SELECT incarnation FROM store.epoch WHERE node_id = $1::int4 AND epoch = $2::uuid
), findings AS (
  DELETE FROM store.finding WHERE node_id = $1::int4 AND context_id IN (SELECT context_id FROM contexts) RETURNING finding_id
), updates AS (
  DELETE FROM store.finding_update WHERE node_id = $1::int4 AND finding_id IN (SELECT finding_id FROM findings)
), watches AS (
  DELETE FROM store.status_lag_watch WHERE node_id = $1::int4 AND finding_id IN (SELECT finding_id FROM findings)
), events AS (
  DELETE FROM store.container_event WHERE node_id = $1::int4 AND context_id IN (SELECT context_id FROM contexts)
), changes AS (
  DELETE FROM store.relist_change WHERE node_id = $1::int4 AND context_id IN (SELECT context_id FROM contexts)
), minutes AS (
  DELETE FROM store.relist_minute WHERE node_id = $1::int4 AND context_id IN (SELECT context_id FROM contexts)
), hours AS (
  DELETE FROM store.relist_hour WHERE node_id = $1::int4 AND context_id IN (SELECT context_id FROM contexts)
), modes AS (
  DELETE FROM store.mode_change WHERE node_id = $1::int4 AND context_id IN (SELECT context_id FROM contexts)
), sessions AS (
  DELETE FROM store.stream_session WHERE node_id = $1::int4 AND epoch = $2::uuid
), gaps AS (
  DELETE FROM store.gap WHERE node_id = $1::int4 AND epoch = $2::uuid
), heads AS (
  DELETE FROM store.signed_head WHERE node_id = $1::int4 AND epoch = $2::uuid
), states AS (
  DELETE FROM store.node_state WHERE node_id = $1::int4 AND incarnation = (SELECT incarnation FROM own)
), forgotten AS (
  DELETE FROM store.context WHERE node_id = $1::int4 AND epoch = $2::uuid
)
DELETE FROM store.epoch WHERE node_id = $1::int4 AND epoch = $2::uuid
