-- The caller has locked the epoch, so nobody else adds contexts to it now. The previous holder of the lock may have added this one
-- after the caller's snapshot was taken and before the caller got the lock.
-- $1 node_id, $2 epoch, $3 context_no, $4 runtime name, $5 runtime version, $6 kubelet version, $7 agent version; then settings in
-- microseconds: $8 relist period, $9 overdue after, $10 missed after, $11 late after; $12 cluster_id
INSERT INTO store.context (node_id, epoch, context_no, runtime_name, runtime_version, kubelet_version, agent_version,
                           relist_period_us, overdue_after_us, missed_after_us, late_after_us, cluster_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (node_id, epoch, context_no) DO UPDATE SET context_no = excluded.context_no
RETURNING context_id
