-- $1 node_id, $2 epoch
SELECT context_id, context_no, runtime_name, runtime_version, kubelet_version, agent_version, relist_period_us, overdue_after_us, missed_after_us, late_after_us
FROM store.context
WHERE node_id = $1 AND epoch = $2
ORDER BY context_no
