-- Adds an epoch when it is first seen. Its start is fixed here for ever: from the agent's wall clock if that is within a day of
-- the database's, else the database's clock minus the epoch's age.
-- $1 cluster_id, $2 node, $3 epoch, $4 prev, $5 incarnation, $6 node_uid, $7 boot_id, $8 wall0, $9 mono0 and
-- $10 started_mono in microseconds
WITH agent AS (
  SELECT timestamptz 'epoch' + $8::int8 * interval '1 microsecond' AS wall, $9::int8 * interval '1 microsecond' AS age
)
INSERT INTO store.epoch (node_id, cluster_id, epoch, prev, incarnation, node_uid, boot_id, started_mono, started_at, ack_generation, last_seq, last_seen)
SELECT n.node_id, n.cluster_id, $3::uuid, $4::uuid, $5::int4, $6::text, $7::text, $10::int8,
       CASE WHEN wall BETWEEN now() - interval '1 day' AND now() + interval '1 day' THEN wall ELSE now() END - age,
       0, 0, now()
FROM agent, store.node n
WHERE n.cluster_id = $1::int2 AND n.name = $2::text
ON CONFLICT DO NOTHING
