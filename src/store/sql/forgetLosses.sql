-- Forgets that records of an epoch are lost, and how far it went beyond what is stored and its node signed: its agent is asked for them again. $1 node_id, $2 epoch
WITH gaps AS (
  DELETE FROM store.gap WHERE node_id = $1::int4 AND epoch = $2::uuid AND scope = 'seq'
)
UPDATE store.epoch SET
  lost = '{}', ack_generation = 0,
  last_seq = greatest(coalesce(upper(received) - 1, 0), head_seq), last_batch_seq = least(last_batch_seq, coalesce(upper(received) - 1, 0)),
  complete_through = NULL, closed_at = NULL, close_cause = NULL
WHERE node_id = $1::int4 AND epoch = $2::uuid
