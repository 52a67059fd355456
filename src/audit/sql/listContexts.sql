-- The contexts of an epoch, and the first seq of each that says which runtime was observed. $1 node_id, $2 epoch
SELECT x.context_id, x.runtime_name, x.runtime_version, x.overdue_after_us, x.missed_after_us, x.late_after_us,
       least((SELECT min(seq) FROM store.container_event v WHERE v.node_id = x.node_id AND v.context_id = x.context_id),
             (SELECT min(seq) FROM store.relist_change h WHERE h.node_id = x.node_id AND h.context_id = x.context_id)) AS first_seq
FROM store.context x
WHERE x.node_id = $1 AND x.epoch = $2
ORDER BY x.context_no
