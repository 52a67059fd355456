-- What roles other than the owner need. Both functions are run by the owner: SELECT store.grant_reader('a_role').

-- A person or a dashboard reads the views, and with them the tables: views run with the rights of who reads them. Partitions are
-- left out: rights on the parent are enough.
CREATE FUNCTION store.grant_reader(to_role name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  relation regclass;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA store, plegwatch TO %I', to_role);
  FOR relation IN
    SELECT oid FROM pg_class
    WHERE relnamespace IN ('store'::regnamespace, 'plegwatch'::regnamespace) AND relkind IN ('r', 'p', 'v') AND NOT relispartition
  LOOP
    EXECUTE format('GRANT SELECT ON %s TO %I', relation, to_role);
  END LOOP;
END $$;

-- A controller reads, adds, updates what is kept current, and empties its own queues. It can neither change the schema nor
-- delete a row of the history.
CREATE FUNCTION store.grant_controller(to_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM store.grant_reader(to_role);
  EXECUTE format('GRANT INSERT, UPDATE ON store.cluster, store.node, store.context, store.epoch, store.container,
    store.stream_session, store.gap, store.node_state, store.report_queue, store.report_condition, store.report, store.rejected,
    store.status_lag_watch TO %I', to_role);
  EXECUTE format('GRANT INSERT ON store.container_event, store.relist_change, store.relist_minute, store.finding,
    store.finding_update, store.mode_change, store.node_condition, store.status_lag TO %I', to_role);
  EXECUTE format('GRANT DELETE ON store.report_queue, store.status_lag_watch TO %I', to_role);
  EXECUTE format('GRANT EXECUTE ON FUNCTION store.make_partition(text, date), store.make_partitions(int4) TO %I', to_role);
END $$;
