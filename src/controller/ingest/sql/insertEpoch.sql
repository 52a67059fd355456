-- Adds an epoch when it is first seen. Its start is fixed here for ever: from the agent's wall clock if that is at most a
-- day behind the database's and not ahead of it, else the database's clock minus the epoch's age. A batch may have waited; it cannot have
-- been sealed after it is stored. A second is left for the usual difference of two clocks.
--
-- An incarnation counts the seconds since 2026, or is one more than the last. One that is more than five minutes ahead is believed to be
-- present, after the node's epochs that claim none higher and before those that do: nobody can take the future of a node. Epochs that claim to be
-- some seconds apart are kept as far apart, up to five minutes: there is an incarnation left for one that claims to be between them.
-- $1 cluster_id, $2 node, $3 epoch, $4 prev, $5 incarnation, $6 boot_id, $7 wall0, $8 mono0 and $9 started_mono in microseconds,
-- $10 whether its first batch is signed. The agent's claim of its Node's UID is not believed.
WITH agent AS (
  SELECT timestamptz 'epoch' + $7::int8 * interval '1 microsecond' AS wall, $8::int8 * interval '1 microsecond' AS age,
         extract(epoch FROM now() - timestamptz '2026-01-01 00:00:00+00')::int4 AS present
), dated AS (
  SELECT CASE WHEN wall BETWEEN now() - interval '1 day' AND now() + interval '1 second' THEN wall ELSE now() END - age AS started_at
  FROM agent
)
INSERT INTO store.epoch (node_id, cluster_id, epoch, prev, incarnation, claimed_incarnation, node_uid, boot_id, started_mono, started_at,
                         ack_generation, last_seq, last_seen, last_new_at, is_attributed)
SELECT n.node_id, n.cluster_id, $3::uuid, $4::uuid,
       CASE WHEN $5::int4 <= present + 300 THEN $5::int4
            WHEN above.incarnation > coalesce(below.incarnation, 0) + 1
            THEN greatest((coalesce(below.incarnation, 0) + above.incarnation::int8) / 2, above.incarnation - least(above.claim - $5::int4, 300))
            ELSE greatest(present, n.incarnation + 1, CASE WHEN below.claim > below.incarnation
                          THEN least(below.incarnation + ($5::int4 - below.claim), present + 300) END) END,
       $5::int4, '', $6::text, $9::int8, started_at, 0, 0, now(), least(started_at, now()), $10::bool
FROM agent, dated, store.node n
LEFT JOIN LATERAL (
  SELECT e.incarnation, e.claimed_incarnation AS claim FROM store.epoch e
  WHERE e.node_id = n.node_id AND e.claimed_incarnation <= $5::int4 ORDER BY e.incarnation DESC LIMIT 1) below ON true
LEFT JOIN LATERAL (
  SELECT e.incarnation, e.claimed_incarnation AS claim FROM store.epoch e
  WHERE e.node_id = n.node_id AND e.claimed_incarnation > $5::int4 AND e.incarnation > coalesce(below.incarnation, 0)
  ORDER BY e.incarnation LIMIT 1) above ON true
WHERE n.cluster_id = $1::int2 AND n.name = $2::text
ON CONFLICT DO NOTHING
