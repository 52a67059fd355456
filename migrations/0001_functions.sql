-- Pure functions of the store: names of small integers, ids, histograms, sets of seqs.
--
-- Tables live in schema `store` and may change from version to version. People read the views of schema `plegwatch`.
-- A function that views use is a single expression, so that the planner inlines it.
CREATE SCHEMA IF NOT EXISTS store;
CREATE SCHEMA IF NOT EXISTS plegwatch;

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

-- The id of a container or sandbox as text; see store.container.
CREATE FUNCTION store.id_text(id bytea, flags int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN flags & 1 = 0 THEN encode(id, 'hex') ELSE convert_from(id, 'UTF8') END;

-- Nanoseconds since 1970 as a time; every int8 is one, between 1677 and 2262.
CREATE FUNCTION store.time_of_ns(ns int8) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamptz '1970-01-01 00:00:00+00' + (ns / 1000) * interval '1 microsecond';

-- An agent of which nothing was stored for longer than this is silent: SILENT_AFTER_MS of the controller.
CREATE FUNCTION store.silent_after() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN interval '3 minutes';

-- A time of a proof: microseconds since its epoch began. A proof comes from an agent, and may be any JSON.
CREATE FUNCTION store.proof_time(epoch_start timestamptz, value jsonb) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(value) = 'number' AND abs(value::numeric) < 1e14
            THEN epoch_start + value::float8 * interval '1 microsecond' END;

-- A time of a runtime in a proof: nanoseconds since 1970 as text; null for none.
CREATE FUNCTION store.proof_ns(value jsonb) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value #>> '{}' ~ '^[1-9][0-9]{0,17}$' THEN store.time_of_ns((value #>> '{}')::int8) END;

-- How long two periods overlap, in milliseconds.
CREATE FUNCTION store.overlap_ms(from_a timestamptz, to_a timestamptz, from_b timestamptz, to_b timestamptz) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(0, extract(epoch FROM least(to_a, to_b) - greatest(from_a, from_b)))::float8 * 1000;

-- The probability that relisting every period_ms misses a state that lasts duration_ms.
CREATE FUNCTION store.chance_to_miss(duration_ms float8, period_ms float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN greatest(0, 1 - duration_ms / period_ms);

-- Upper bounds of the duration buckets in milliseconds: HIST_BOUNDS_MS of the agent. The last bucket has none.
CREATE FUNCTION store.hist_bounds() RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

-- The same for the relists of a kubelet: KUBELET_BOUNDS_MS of the agent.
CREATE FUNCTION store.kubelet_hist_bounds() RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000];

-- The q-quantile of a histogram in milliseconds, interpolated linearly inside its bucket; null for an empty histogram.
-- A quantile in the last bucket is that bucket's lower bound.
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

-- Adds two histograms bucket by bucket; missing buckets count as zero.
CREATE FUNCTION store.hist_add(a int4[], b int4[]) RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_agg(least(coalesce(x, 0)::int8 + coalesce(y, 0), 2147483647)::int4 ORDER BY i), '{}')
  FROM unnest(a, b) WITH ORDINALITY AS u (x, y, i)
$$;

CREATE AGGREGATE store.hist_sum(int4[]) (SFUNC = store.hist_add, STYPE = int4[], INITCOND = '{}', PARALLEL = SAFE);

-- The acked seq of an epoch: every seq from 1 to this one is stored or declared lost. 0 while seq 1 is missing.
CREATE FUNCTION store.acked_seq(received int4multirange, lost int4multirange) RETURNS int4
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce((SELECT upper(r) - 1 FROM unnest(received + lost) AS r WHERE r @> 1), 0)
$$;

-- How many seqs a set holds.
CREATE FUNCTION store.count_seqs(seqs int4multirange) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(sum(upper(r) - lower(r)), 0)::int4 FROM unnest(seqs) AS r
$$;
