-- Partitions: how each table is partitioned, and functions that make what is missing.

-- Whether a table is partitioned by day or by month; null for a table that is not partitioned.
CREATE FUNCTION store.partition_unit(of_table text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN of_table IN ('container_event', 'container', 'relist_change', 'relist_minute') THEN 'day'
  WHEN of_table IN ('finding', 'finding_update', 'stream_session', 'mode_change', 'node_condition', 'relist_hour') THEN 'month' END;

-- The name of the partition that holds a day, without its schema: container_event_20261120, finding_202611.
CREATE FUNCTION store.partition_name(of_table text, of_day date) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN of_table || '_' ||
  CASE store.partition_unit(of_table) WHEN 'day' THEN to_char(of_day::timestamp, 'YYYYMMDD')
                                      ELSE to_char(of_day::timestamp, 'YYYYMM') END;

-- Makes the partition that holds a day unless it exists; returns true if it made one. Runs as the owner, so that a controller
-- needs no right to create tables. LIKE and ATTACH take no lock that readers or writers would wait for. A partition that is named itself
-- shows nobody but the owner a row, whatever rights default privileges give on it.
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
  -- The lock that ATTACH takes anyway: two that make partitions of one table wait for each other, and no reader can take it.
  EXECUTE format('LOCK TABLE store.%I IN SHARE UPDATE EXCLUSIVE MODE', of_table);
  IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(format('store.%I', child)) AND NOT inhdetachpending) THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE store.%I (LIKE store.%I INCLUDING ALL)', child, of_table);
  EXECUTE format('ALTER TABLE store.%I ENABLE ROW LEVEL SECURITY', child);
  EXECUTE format('ALTER TABLE store.%I ATTACH PARTITION store.%I FOR VALUES FROM (%L) TO (%L)', of_table, child, low, high);
  RETURN true;
END $$;

-- Makes the partitions of every table from today to this many days ahead; returns how many were missing.
CREATE FUNCTION store.make_partitions(days_ahead int4) RETURNS int4
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made int4 := 0;
  of_table text;
BEGIN
  FOR of_table IN
    SELECT relname FROM pg_class WHERE relnamespace = 'store'::regnamespace AND relkind = 'p' ORDER BY relname
  LOOP
    FOR ahead IN 0..days_ahead LOOP
      IF store.make_partition(of_table, (now() AT TIME ZONE 'UTC')::date + ahead) THEN
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
REVOKE ALL ON FUNCTION store.make_partition(text, date), store.make_partitions(int4) FROM PUBLIC;

SELECT store.make_partitions(3);
