-- What store.grant_controller grants and the current role does not have, as the statements that an owner would run.
WITH needed (privilege, relations) AS (
  VALUES
    ('SELECT', ARRAY[
      'cluster', 'node', 'context', 'epoch', 'container', 'stream_session', 'gap', 'node_state', 'report_queue', 'report_condition',
      'report', 'rejected', 'status_lag_watch', 'container_event', 'relist_change', 'relist_minute', 'relist_hour', 'finding', 'finding_update',
      'mode_change', 'node_condition', 'ready_change', 'node_info', 'status_lag', 'node_key', 'report_writer', 'leader'
    ]),
    ('INSERT', ARRAY[
      'cluster', 'node', 'context', 'epoch', 'container', 'stream_session', 'gap', 'node_state', 'report_queue', 'report_condition',
      'report', 'rejected', 'status_lag_watch', 'container_event', 'relist_change', 'relist_minute', 'finding', 'finding_update',
      'mode_change', 'node_condition', 'ready_change', 'node_info', 'status_lag', 'node_key', 'report_writer', 'leader'
    ]),
    ('UPDATE', ARRAY[
      'node', 'context', 'epoch', 'container', 'stream_session', 'gap', 'node_state', 'report_queue', 'report_condition',
      'report', 'rejected', 'status_lag_watch', 'node_key', 'report_writer', 'leader'
    ]),
    ('DELETE', ARRAY['node', 'node_key', 'report', 'report_condition', 'report_queue', 'status_lag_watch'])
)
SELECT current_user::text AS role, needed.privilege || ' on store.' || relation AS missing
FROM needed, unnest(needed.relations) AS relation
WHERE NOT has_table_privilege('store.' || relation, needed.privilege)
UNION ALL
SELECT current_user::text, 'UPDATE on store.cluster'
WHERE NOT has_column_privilege('store.cluster', 'uid', 'UPDATE')
UNION ALL
SELECT current_user::text, 'EXECUTE on store.check_term'
WHERE NOT has_function_privilege('store.check_term(int4, int4)', 'EXECUTE')
UNION ALL
SELECT current_user::text, 'EXECUTE on store.make_partitions'
WHERE NOT has_function_privilege('store.make_partitions(int4)', 'EXECUTE')
ORDER BY missing
