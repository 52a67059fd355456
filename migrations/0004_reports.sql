-- What the report writer remembers of each node's report, so that a new leader neither writes everything again nor
-- forgets what was due.
--
--   created_at   of the report in Kubernetes: its age
--   shown        a digest of what a reader cares about, as last written
--   recheck_at   when the report may have to change without any new record: a miss that leaves the last 24 hours
--   gone_at      the Node left Kubernetes and the report with it; the history stays
CREATE TABLE store.report (
  node_id int4 PRIMARY KEY REFERENCES store.node,
  cluster_id int2 NOT NULL,
  created_at timestamptz,
  written_at timestamptz,
  shown text,
  recheck_at timestamptz,
  gone_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX report_recheck ON store.report (cluster_id, recheck_at) WHERE recheck_at IS NOT NULL;

-- As before, and the new table.
CREATE OR REPLACE FUNCTION store.grant_controller(to_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM store.grant_reader(to_role);
  EXECUTE format('GRANT INSERT, UPDATE ON store.cluster, store.node, store.context, store.epoch, store.object, store.session,
    store.gap, store.node_state, store.report_queue, store.report_condition, store.report, store.leader, store.rejected TO %I', to_role);
  EXECUTE format('GRANT INSERT ON store.event, store.change, store.sample, store.finding, store.finding_update,
    store.mode_change, store.node_condition TO %I', to_role);
  EXECUTE format('GRANT DELETE ON store.report_queue, store.report_condition, store.rejected TO %I', to_role);
  EXECUTE format('GRANT EXECUTE ON FUNCTION store.make_partition(text, date), store.make_partitions(int4) TO %I', to_role);
END $$;
