-- The heads of an epoch that are kept, the latest included. $1 node_id, $2 epoch
SELECT h.seq, h.from_seq, h.record_us, h.head, h.hints
FROM (
  SELECT seq, from_seq, record_us, head, hints FROM store.signed_head WHERE node_id = $1 AND epoch = $2
  UNION ALL
  SELECT head_seq, head_from, head_us, head, head_hints FROM store.epoch WHERE node_id = $1 AND epoch = $2 AND head IS NOT NULL
    AND NOT EXISTS (SELECT FROM store.signed_head k WHERE k.node_id = $1 AND k.epoch = $2 AND k.seq = head_seq AND k.from_seq = head_from AND k.head = epoch.head)
) h
ORDER BY h.from_seq, h.seq
