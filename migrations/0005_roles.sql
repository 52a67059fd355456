-- Which role may read and write which clusters. The owner of the database runs one statement for each role:
--
--   SELECT store.grant_controller('plegwatch_prod', 'prod')   the controller of one cluster; without a cluster: of every cluster
--   SELECT store.grant_reader('grafana')                      reads every cluster; with a cluster: that one
--   SELECT store.revoke_access('grafana')                     takes back everything; with a cluster: that one
--
-- Grants add up. Members of a role have what it has, as with every right in Postgres.
--
-- Rights on tables say what a role may do; row-level security says with which rows. Roles have rights on partitioned tables only: no
-- policy applies to a partition that is named itself.

-- cluster_id: null for every cluster.
CREATE TABLE store.access (
  role name NOT NULL,
  cluster_id int2 REFERENCES store.cluster,
  can_write bool NOT NULL,
  UNIQUE NULLS NOT DISTINCT (role, cluster_id)
);

-- A role sees its own rows, and those of the roles that it is a member of. The owner sees all of them.
ALTER TABLE store.access ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON store.access FOR SELECT USING (pg_has_role(to_regrole(quote_ident(role)), 'USAGE'));

-- The clusters whose rows the current role may read, or write; null for every cluster, as the owner may. Policies ask it in a subquery: once
-- in a statement, not once in a row. It is in PL/pgSQL because a session keeps its plan, and its search path is fixed so that no
-- caller can replace an operator. A role that kept its rights on tables when it was renamed has no grants any more: nothing to read is an error.
CREATE FUNCTION store.own_clusters(to_write bool) RETURNS int2[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  every bool;
  clusters int2[];
BEGIN
  SELECT coalesce(bool_or(a.cluster_id IS NULL), false)
           OR pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'store.access'::regclass), 'USAGE'),
         coalesce(array_agg(a.cluster_id), '{}')
  INTO every, clusters
  FROM store.access a
  WHERE a.can_write >= to_write AND pg_has_role(to_regrole(quote_ident(a.role)), 'USAGE');
  IF NOT to_write AND NOT every AND clusters = '{}' THEN
    RAISE insufficient_privilege USING
      MESSAGE = format('role %I may read no cluster: store.grant_reader grants it, also again after it was renamed', current_user);
  END IF;
  RETURN CASE WHEN NOT every THEN clusters END;
END $$;

-- Gives every table with rows of clusters its policies: a role reads and writes rows of its clusters, and a row that it writes is of a
-- node of the same cluster. Otherwise one cluster could add rows to the nodes of another one. `+ 0`: until the first ANALYZE of a new database
-- the index of cluster and name seems as good as that of node_id, and each row that is added would read every node of the cluster.
CREATE FUNCTION store.protect_clusters() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  of_table regclass;
  of_node bool;
  readable text := 'coalesce(cluster_id = ANY ((SELECT store.own_clusters(false))::int2[]), true)';
  writable text := 'coalesce(cluster_id = ANY ((SELECT store.own_clusters(true))::int2[]), true)';
  stored text;
BEGIN
  FOR of_table, of_node IN
    SELECT c.oid, c.relname <> 'node' AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'node_id')
    FROM pg_class c
    WHERE c.relnamespace = 'store'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'cluster_id')
      AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid)
  LOOP
    stored := writable;
    IF of_node THEN
      stored := format('%1$s AND EXISTS (SELECT FROM store.node n WHERE n.node_id = %2$s.node_id AND n.cluster_id + 0 = %2$s.cluster_id)',
                       writable, of_table);
    END IF;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', of_table);
    EXECUTE format('CREATE POLICY reads ON %s FOR SELECT USING (%s)', of_table, readable);
    EXECUTE format('CREATE POLICY inserts ON %s FOR INSERT WITH CHECK (%s)', of_table, stored);
    EXECUTE format('CREATE POLICY updates ON %s FOR UPDATE USING (%s) WITH CHECK (%s)', of_table, writable, stored);
    EXECUTE format('CREATE POLICY deletes ON %s FOR DELETE USING (%s)', of_table, writable);
  END LOOP;
END $$;

-- Objects that a role needs and `plegwatch doctor` looks for: relations and their columns, and functions. A reader reads the views, and with them the
-- tables: views run with the rights of who reads them.
--
-- A controller reads, adds, updates what is kept current, empties its own queues, and deletes a node that has no history with its
-- report. It can neither change the schema nor delete a row of the history: its foreign key keeps the node.
CREATE FUNCTION store.needed_rights(to_write bool) RETURNS TABLE (privilege text, object text, of_column text) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT 'SELECT', c.oid::regclass::text, NULL
  FROM pg_class c
  WHERE c.relnamespace IN ('store'::regnamespace, 'plegwatch'::regnamespace) AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
  UNION ALL
  VALUES ('EXECUTE', 'store.coverage(timestamptz, timestamptz)', NULL)
  UNION ALL
  SELECT privilege, 'store.' || object, needed.of_column
  FROM (VALUES
    (ARRAY['INSERT'], NULL, ARRAY['cluster', 'container_event', 'relist_change', 'relist_minute', 'finding', 'finding_update', 'mode_change',
                                  'node_condition', 'ready_change', 'node_info', 'status_lag', 'signed_head', 'otlp_outbox']),
    (ARRAY['INSERT', 'UPDATE'], NULL, ARRAY['node', 'context', 'epoch', 'container', 'node_key', 'node_signer', 'stream_session', 'gap', 'node_state',
                                            'report_queue', 'report_condition', 'report', 'rejected', 'status_lag_watch', 'leader', 'ingest']),
    -- Not its name, which another cluster may be meant to have.
    (ARRAY['UPDATE'], 'uid', ARRAY['cluster']),
    (ARRAY['UPDATE'], 'signatures_required_since', ARRAY['cluster']),
    (ARRAY['UPDATE'], 'otlp_since', ARRAY['cluster']),
    (ARRAY['DELETE'], NULL, ARRAY['node', 'node_key', 'node_signer', 'report', 'report_condition', 'report_queue', 'status_lag_watch',
                                  'otlp_outbox']),
    (ARRAY['EXECUTE'], NULL, ARRAY['make_partition(text, date)', 'make_partitions(int4)', 'check_term(int4, int4)'])
  ) AS needed (privileges, of_column, objects), unnest(needed.privileges) AS privilege, unnest(needed.objects) AS object
  WHERE to_write;
END;

CREATE FUNCTION store.grant_tables(to_role name, can_write bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  needed record;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA store, plegwatch TO %I', to_role);
  EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA plegwatch TO %I', to_role);
  FOR needed IN SELECT * FROM store.needed_rights(can_write) LOOP
    EXECUTE format('GRANT %s %s ON %s %s TO %I', needed.privilege, '(' || needed.of_column || ')',
                   CASE needed.privilege WHEN 'EXECUTE' THEN 'FUNCTION' END, needed.object, to_role);
  END LOOP;
END $$;

CREATE FUNCTION store.grant_access(to_role name, of_cluster text, can_write bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO store.cluster (name) SELECT of_cluster WHERE of_cluster IS NOT NULL ON CONFLICT DO NOTHING;
  INSERT INTO store.access AS a (role, cluster_id, can_write)
  VALUES (to_role, (SELECT cluster_id FROM store.cluster WHERE name = of_cluster), grant_access.can_write)
  ON CONFLICT (role, cluster_id) DO UPDATE SET can_write = a.can_write OR excluded.can_write;
  PERFORM store.grant_tables(to_role, grant_access.can_write);
END $$;

CREATE FUNCTION store.grant_reader(to_role name, of_cluster text DEFAULT NULL) RETURNS void LANGUAGE sql
RETURN store.grant_access(to_role, of_cluster, false);

CREATE FUNCTION store.grant_controller(to_role name, of_cluster text DEFAULT NULL) RETURNS void LANGUAGE sql
RETURN store.grant_access(to_role, of_cluster, true);

CREATE FUNCTION store.revoke_access(from_role name, of_cluster text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  writes bool;
BEGIN
  DELETE FROM store.access a
  WHERE a.role = from_role AND (of_cluster IS NULL OR a.cluster_id = (SELECT cluster_id FROM store.cluster WHERE name = of_cluster));
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA store, plegwatch FROM %I', from_role);
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA store, plegwatch FROM %I', from_role);
  EXECUTE format('REVOKE ALL ON SCHEMA store, plegwatch FROM %I', from_role);
  SELECT bool_or(can_write) INTO writes FROM store.access a WHERE a.role = from_role;
  IF writes IS NOT NULL THEN
    PERFORM store.grant_tables(from_role, writes);
  END IF;
END $$;

-- A cluster was built again under its name: its UID is the one that is seen next.
CREATE FUNCTION store.rebind_cluster(of_cluster text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE store.cluster SET uid = NULL WHERE name = of_cluster;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no cluster %', of_cluster;
  END IF;
END $$;

-- After a migration: new tables get their policies, every role gets what it lacks, and roles that were dropped are forgotten.
CREATE FUNCTION store.renew_grants() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM store.protect_clusters();
  DELETE FROM store.access a WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = a.role);
  PERFORM store.grant_tables(role, bool_or(can_write)) FROM store.access GROUP BY role;
END $$;

REVOKE ALL ON FUNCTION store.check_term(int4, int4), store.protect_clusters(), store.grant_tables(name, bool), store.grant_access(name, text, bool),
  store.grant_reader(name, text), store.grant_controller(name, text), store.revoke_access(name, text), store.rebind_cluster(text), store.renew_grants() FROM PUBLIC;

SELECT store.protect_clusters();
