-- Functions of the store: names of small integers, histograms, range sets, partitions, grants.
--
-- Functions that the views use are single expressions, so that the planner inlines them.

CREATE FUNCTION store.event_type_name(type int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE type
  WHEN 0 THEN 'CREATED' WHEN 1 THEN 'STARTED' WHEN 2 THEN 'STOPPED' WHEN 3 THEN 'DELETED'
  ELSE 'UNKNOWN(' || type || ')' END;

CREATE FUNCTION store.pleg_state_name(state int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE state
  WHEN 0 THEN 'non-existent' WHEN 1 THEN 'unknown' WHEN 2 THEN 'running' WHEN 3 THEN 'exited'
  ELSE 'UNKNOWN(' || state || ')' END;

CREATE FUNCTION store.pleg_event_names(mask int4) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_remove(ARRAY[
  CASE WHEN mask & 1 <> 0 THEN 'ContainerStarted' END,
  CASE WHEN mask & 2 <> 0 THEN 'ContainerDied' END,
  CASE WHEN mask & 4 <> 0 THEN 'ContainerRemoved' END,
  CASE WHEN mask & 8 <> 0 THEN 'ContainerChanged' END], NULL);

CREATE FUNCTION store.id_text(cid bytea, bits int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN bits & 1 = 0 THEN encode(cid, 'hex') ELSE convert_from(cid, 'UTF8') END;

-- Nanoseconds since 1970 as a time; every int8 has one, between 1677 and 2262.
CREATE FUNCTION store.time_of_ns(ns int8) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamptz '1970-01-01 00:00:00+00' + (ns / 1000) * interval '1 microsecond';

-- Upper bounds of the duration buckets, in milliseconds: HIST_BOUNDS_MS of the agent. The last bucket has none.
CREATE FUNCTION store.hist_bounds() RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

-- The same of a kubelet's relists: KUBELET_BOUNDS_MS of the agent.
CREATE FUNCTION store.kubelet_hist_bounds() RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000];

-- The duration in milliseconds below which the fraction q of a histogram lies, linear inside its bucket; null when it is
-- empty. What lies in the last bucket is given as its lower bound.
CREATE FUNCTION store.hist_quantile(hist int4[], bounds int4[], q float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH bucket AS (
    SELECT i, n, sum(n) OVER (ORDER BY i) AS upto, sum(n) OVER () AS total
    FROM unnest(hist) WITH ORDINALITY AS u (n, i)
  ), edge AS (
    SELECT i, n, upto, total,
           coalesce(bounds[i - 1], 0)::float8 AS low,
           bounds[i]::float8 AS high
    FROM bucket WHERE n > 0
  )
  SELECT CASE WHEN high IS NULL THEN bounds[array_length(bounds, 1)]::float8
              ELSE low + (high - low) * greatest(0, q * total - (upto - n)) / n END
  FROM edge WHERE upto >= q * total ORDER BY i LIMIT 1
$$;

CREATE FUNCTION store.hist_quantile(hist int4[], q float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN store.hist_quantile(hist, store.hist_bounds(), q);

CREATE FUNCTION store.hist_quantile(hist int2[], q float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN store.hist_quantile(hist::int4[], q);

-- Two histograms added bucket by bucket; the shorter one is filled with zeros.
CREATE FUNCTION store.hist_add(a int4[], b int4[]) RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_agg(least(coalesce(x, 0)::int8 + coalesce(y, 0), 2147483647)::int4 ORDER BY i), '{}')
  FROM unnest(a, b) WITH ORDINALITY AS u (x, y, i)
$$;

CREATE AGGREGATE store.hist_sum(int4[]) (SFUNC = store.hist_add, STYPE = int4[], INITCOND = '{}', PARALLEL = SAFE);

-- The mark of an epoch: everything from 1 to here is stored or will never come. 0 when seq 1 is still awaited.
CREATE FUNCTION store.mark(received int4multirange, lost int4multirange) RETURNS int4
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce((SELECT upper(r) - 1 FROM unnest(received + lost) AS r WHERE r @> 1), 0)
$$;

-- How many positions a range set holds.
CREATE FUNCTION store.positions(ranges int4multirange) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(sum(upper(r) - lower(r)), 0)::int4 FROM unnest(ranges) AS r
$$;

-- Whether a table is cut by day or by month; null for a table that is not cut.
CREATE FUNCTION store.partition_unit(of_table text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN of_table IN ('event', 'object', 'change', 'sample') THEN 'day'
  WHEN of_table IN ('finding', 'finding_update', 'session', 'mode_change', 'node_condition', 'sample_hour') THEN 'month' END;

-- The name of the partition that holds a day, without its schema: event_20261120, finding_202611.
CREATE FUNCTION store.partition_name(of_table text, of_day date) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN of_table || '_' ||
  CASE store.partition_unit(of_table) WHEN 'day' THEN to_char(of_day::timestamp, 'YYYYMMDD')
                                      ELSE to_char(of_day::timestamp, 'YYYYMM') END;

-- Makes the partition that holds a day, unless it is there; true when it made one. It runs as the owner, so that a
-- controller needs no right to create. LIKE and ATTACH take no lock that readers or writers would wait for.
CREATE FUNCTION store.make_partition(of_table text, of_day date) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  unit text := store.partition_unit(of_table);
  child text := store.partition_name(of_table, of_day);
  low date := date_trunc(unit, of_day::timestamp)::date;
  high date := (date_trunc(unit, of_day::timestamp) + ('1 ' || unit)::interval)::date;
BEGIN
  IF unit IS NULL THEN
    RAISE EXCEPTION 'store.% is not partitioned', of_table;
  END IF;
  IF of_day NOT BETWEEN current_date - 500 AND current_date + 40 THEN
    RAISE EXCEPTION 'day % is too far from today for a partition', of_day USING ERRCODE = 'datetime_field_overflow';
  END IF;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(format('store.%I', child)) AND NOT inhdetachpending) THEN
    RETURN false;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('plegwatch.partitions'));
  IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(format('store.%I', child)) AND NOT inhdetachpending) THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE store.%I (LIKE store.%I INCLUDING ALL)', child, of_table);
  EXECUTE format('ALTER TABLE store.%I ATTACH PARTITION store.%I FOR VALUES FROM (%L) TO (%L)', of_table, child, low, high);
  RETURN true;
END $$;

-- Makes the partitions of every table from today to so many days ahead; says how many were missing.
CREATE FUNCTION store.make_partitions(days_ahead int4) RETURNS int4
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made int4 := 0;
  of_table text;
  ahead int4;
BEGIN
  FOREACH of_table IN ARRAY ARRAY['event', 'object', 'change', 'sample', 'finding', 'finding_update', 'session',
                                  'mode_change', 'node_condition', 'sample_hour'] LOOP
    FOR ahead IN 0..days_ahead LOOP
      IF store.make_partition(of_table, (now() AT TIME ZONE 'UTC')::date + ahead) THEN
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
REVOKE ALL ON FUNCTION store.make_partition(text, date), store.make_partitions(int4) FROM PUBLIC;

-- What a person or a dashboard needs to read the views: the tables under them too, because the views ask with the rights
-- of who reads them. Partitions are left out: rights on the parent are enough. Run by the owner.
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

-- What a controller's role needs: to read, to add, to update what is kept up to date, to empty its own queues. It can not
-- change the schema, nor remove a row of the history. Run by the owner: SELECT store.grant_controller('a_role').
CREATE FUNCTION store.grant_controller(to_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM store.grant_reader(to_role);
  EXECUTE format('GRANT INSERT, UPDATE ON store.cluster, store.node, store.context, store.epoch, store.object, store.session,
    store.gap, store.node_state, store.report_queue, store.report_condition, store.leader, store.rejected TO %I', to_role);
  EXECUTE format('GRANT INSERT ON store.event, store.change, store.sample, store.finding, store.finding_update,
    store.mode_change, store.node_condition TO %I', to_role);
  EXECUTE format('GRANT DELETE ON store.report_queue, store.report_condition, store.rejected TO %I', to_role);
  EXECUTE format('GRANT EXECUTE ON FUNCTION store.make_partition(text, date), store.make_partitions(int4) TO %I', to_role);
END $$;

SELECT store.make_partitions(3);
