-- Pure functions of the store: names of small integers, ids, histograms, sets of seqs.
--
-- Tables live in schema `store` and may change from version to version. People read the views of schema `plegwatch`.
-- A function that views use is a single expression, so that the planner inlines it. It does not inline a function that is declared more constant
-- than what it calls; a time plus an interval is STABLE, because an interval may have days, and those depend on the time zone.
CREATE SCHEMA IF NOT EXISTS store;
CREATE SCHEMA IF NOT EXISTS plegwatch;

CREATE FUNCTION store.event_type_name(type int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE type
  WHEN 0 THEN 'CREATED' WHEN 1 THEN 'STARTED' WHEN 2 THEN 'STOPPED' WHEN 3 THEN 'DELETED'
  ELSE 'UNKNOWN(' || type::text || ')' END;

-- How a container ended, by the flags of its event. EXIT_REASONS of the agent.
CREATE FUNCTION store.exit_reason(flags int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE (flags >> 12) & 15
  WHEN 0 THEN NULL
  WHEN 1 THEN 'Completed' WHEN 2 THEN 'Error' WHEN 3 THEN 'OOMKilled' WHEN 4 THEN 'seccomp killed'
  WHEN 5 THEN 'StartError' WHEN 6 THEN 'ContainerCannotRun' WHEN 7 THEN 'Unknown'
  ELSE 'Other' END;

CREATE FUNCTION store.exit_code(flags int4) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN flags & 2048 <> 0 THEN (flags >> 16) & 255 END;

-- The same in words: exit 137 OOMKilled.
CREATE FUNCTION store.exit_text(flags int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'exit ' || coalesce(store.exit_code(flags)::text, '?') || ' ' || store.exit_reason(flags);

CREATE FUNCTION store.pleg_state_name(state int4) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE state
  WHEN 0 THEN 'non-existent' WHEN 1 THEN 'unknown' WHEN 2 THEN 'running' WHEN 3 THEN 'exited'
  ELSE 'UNKNOWN(' || state::text || ')' END;

CREATE FUNCTION store.pleg_event_names(mask int4) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_remove(ARRAY[
  CASE WHEN mask & 1 <> 0 THEN 'ContainerStarted' END,
  CASE WHEN mask & 2 <> 0 THEN 'ContainerDied' END,
  CASE WHEN mask & 4 <> 0 THEN 'ContainerRemoved' END,
  CASE WHEN mask & 8 <> 0 THEN 'ContainerChanged' END], NULL);

-- A UID in fewer bytes: the 16 that a UUID spells. Any other one, as that of a static pod, is its text; with a zero byte where that has 16 bytes too.
CREATE FUNCTION store.uid_bytes(uid text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN uid ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN decode(replace(uid, '-', ''), 'hex')
            WHEN octet_length(uid) = 16 THEN convert_to(uid, 'UTF8') || '\x00'
            ELSE convert_to(uid, 'UTF8') END;

-- The empty text at its end is null where the UID is: so the planner sees that a condition on it needs the row, and begins at the names.
CREATE FUNCTION store.uid_text(packed bytea) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE octet_length(packed) WHEN 16 THEN encode(packed, 'hex')::uuid::text ELSE convert_from(rtrim(packed, '\x00'), 'UTF8') END
  || encode(substr(packed, 1, 0), 'hex');

-- Nanoseconds since 1970 as a time; every int8 is one, between 1677 and 2262.
CREATE FUNCTION store.time_of_ns(ns int8) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN timestamptz '1970-01-01 00:00:00+00' + (ns / 1000) * interval '1 microsecond';

-- An agent that is not known to have run for longer than this is silent: SILENT_AFTER_MS of the controller.
CREATE FUNCTION store.silent_after() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN interval '3 minutes';

-- For how long ingest has stored everything that agents sent, in milliseconds; 0 if it has not, or does not say so now.
CREATE FUNCTION store.caught_up_ms(said_at timestamptz, caught_up_since timestamptz) RETURNS float8 LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN said_at > now() - interval '30 seconds' THEN extract(epoch FROM now() - caught_up_since) * 1000 ELSE 0 END::float8;

-- The node pool that labels of a Node name: by the first that names one, such as karpenter.sh/nodepool, eks.amazonaws.com/nodegroup or one's own pool.
CREATE FUNCTION store.pool_of(labels jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT value FROM jsonb_each_text(labels) WHERE key ~ '(pool|nodegroup)$' ORDER BY key LIMIT 1);

-- The minor version of a kubelet; null where it is not known.
CREATE FUNCTION store.kubelet_minor(kubelet_version text) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substring(kubelet_version FROM '^v?1\.(\d{1,4})(?!\d)')::int4;

-- The consequence in this version of a kubelet that gave up its event stream; null unless it did: fallbackConsequence of the protocol. Without a
-- subquery, so that the planner inlines it.
CREATE FUNCTION store.fallback_consequence(mode text, reason text, kubelet_version text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN coalesce(mode, '') NOT IN ('Fallback', 'HintDisabled') THEN NULL
  WHEN mode = 'HintDisabled' THEN CASE WHEN store.kubelet_minor(kubelet_version) = 37 THEN 'hint_lost' ELSE 'unknown' END
  WHEN store.kubelet_minor(kubelet_version) BETWEEN 26 AND 31
    THEN CASE WHEN reason IN ('RuntimeUnsupported', 'RuntimeDownAtStart', 'NeverConnected') THEN 'slower' ELSE 'wrong_until_restart' END
  WHEN store.kubelet_minor(kubelet_version) BETWEEN 32 AND 36 THEN 'slower'
  ELSE 'unknown'
END;

-- A time of a proof: microseconds since its epoch began. A proof comes from an agent, and may be any JSON.
CREATE FUNCTION store.proof_time(epoch_start timestamptz, value jsonb) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(value) = 'number' AND abs(value::numeric) < 1e14
            THEN epoch_start + value::float8 * interval '1 microsecond' END;

-- A time of a runtime in a proof: nanoseconds since 1970 as text; null for none.
CREATE FUNCTION store.proof_ns(value jsonb) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN value #>> '{}' ~ '^[1-9][0-9]{0,17}$' THEN store.time_of_ns((value #>> '{}')::int8) END;

-- A duration of a proof, in milliseconds.
CREATE FUNCTION store.proof_ms(value jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN least(greatest(value::numeric, 0), 1e15)::float8 / 1000 END;

-- A bound of a duration, which is not below 0; null for none.
CREATE FUNCTION store.not_negative(n float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN n < 0 THEN 0 ELSE n END;

-- How long two periods overlap, in milliseconds.
CREATE FUNCTION store.overlap_ms(from_a timestamptz, to_a timestamptz, from_b timestamptz, to_b timestamptz) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(0, extract(epoch FROM least(to_a, to_b) - greatest(from_a, from_b)))::float8 * 1000;

-- The share of a minute of an agent, which ended at ended_at, that is between since and until. It lasts up to ten minutes while nothing happens.
CREATE FUNCTION store.share_within(ended_at timestamptz, span_us int8, since timestamptz, until timestamptz) RETURNS float8
LANGUAGE sql STABLE PARALLEL SAFE
RETURN least(1, store.overlap_ms(ended_at - span_us * interval '1 microsecond', ended_at, since, until) * 1000 / greatest(1, span_us));

-- The end of the minutes that a row is about, of an agent: from the one in which it begins up to, without it, the one in which it ends; one at least.
-- Rows that follow one another leave no minute out.
CREATE FUNCTION store.minutes_to(minute timestamptz, ended_at timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN greatest(minute + interval '1 minute', date_trunc('minute', ended_at));

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

-- The same for kubelet lag: KUBELET_LAG_BOUNDS_MS of the agent.
CREATE FUNCTION store.kubelet_lag_bounds() RETURNS int4[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

-- The q-quantile of a histogram in milliseconds, interpolated linearly inside its bucket; null for an empty histogram.
-- A quantile in the last bucket is that bucket's lower bound. Functions of histograms are in PL/pgSQL, because one in SQL runs a query for each row.
CREATE FUNCTION store.hist_quantile(hist int4[], bounds int4[], q float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  n int4;
  i int4 := 0;
  upto int8 := 0;
  rank float8 := q * store.hist_count(hist);
  low float8;
BEGIN
  FOREACH n IN ARRAY hist LOOP
    i := i + 1;
    upto := upto + coalesce(n, 0);
    IF upto >= rank AND n > 0 THEN
      IF bounds[i] IS NULL THEN
        RETURN bounds[array_length(bounds, 1)];
      END IF;
      low := coalesce(bounds[i - 1], 0);
      RETURN low + (bounds[i] - low) * greatest(0, rank - (upto - n)) / n;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

CREATE FUNCTION store.hist_quantile(hist int4[], q float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN store.hist_quantile(hist, store.hist_bounds(), q);

-- The upper bound of the q-quantile: that of its bucket, which nothing in it exceeds. Null for an empty histogram, and in the last bucket, which has none.
CREATE FUNCTION store.hist_quantile_bound(hist int4[], bounds int4[], q float8) RETURNS int4 LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  n int4;
  i int4 := 0;
  upto int8 := 0;
  rank float8 := q * store.hist_count(hist);
BEGIN
  FOREACH n IN ARRAY hist LOOP
    i := i + 1;
    upto := upto + coalesce(n, 0);
    IF upto >= rank AND n > 0 THEN
      RETURN bounds[i];
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- How many a histogram counts; 0 for null.
CREATE FUNCTION store.hist_count(hist int4[]) RETURNS int8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  n int4;
  total int8 := 0;
BEGIN
  FOREACH n IN ARRAY coalesce(hist, '{}') LOOP
    total := total + coalesce(n, 0);
  END LOOP;
  RETURN total;
END $$;

-- Adds two histograms bucket by bucket; missing buckets count as zero.
CREATE FUNCTION store.hist_add(a int4[], b int4[]) RETURNS int4[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
  FOR i IN 1..cardinality(b) LOOP
    a[i] := least(coalesce(a[i], 0)::int8 + coalesce(b[i], 0), 2147483647);
  END LOOP;
  RETURN a;
END $$;

-- For one row, that row: the function is strict and the aggregate begins with null. Null for no row.
CREATE AGGREGATE store.hist_sum(int4[]) (SFUNC = store.hist_add, STYPE = int4[], COMBINEFUNC = store.hist_add, PARALLEL = SAFE);

-- The relists of a minute, in microseconds from its start, as src/store/listTimes.ts packs them. events_to: when the last event was received
-- that was compared before.
CREATE FUNCTION store.relists_of(packed bytea)
RETURNS TABLE (sandboxes_from int8, sandboxes_to int8, containers_from int8, containers_to int8, flags int4, events_to int8)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  at int4 := 0;
  byte int4;
  value int8;
  shift int4;
  start int8 := 0;
  field int4 := 0;
  step int8 := 0;
  n int8;
BEGIN
  -- Otherwise each byte of a compressed value would be read from all of it decompressed again.
  packed := packed || ''::bytea;
  flags := 0;
  events_to := 0;
  sandboxes_from := 0;
  WHILE at < length(packed) LOOP
    value := 0;
    shift := 0;
    LOOP
      byte := get_byte(packed, at);
      at := at + 1;
      value := value | ((byte & 127)::int8 << shift);
      EXIT WHEN byte < 128;
      shift := shift + 7;
    END LOOP;
    IF field = 0 THEN
      start := value;
      value := value >> 1;
    END IF;
    n := (value >> 1) # -(value & 1);
    CASE field
      WHEN 0 THEN
        step := step + n;
        sandboxes_from := sandboxes_from + step;
      WHEN 1 THEN flags := n;
      WHEN 2 THEN events_to := events_to + n;
      WHEN 3 THEN sandboxes_to := sandboxes_from + n;
      WHEN 4 THEN containers_from := sandboxes_to + n;
      ELSE
        containers_to := containers_from + n;
        RETURN NEXT;
    END CASE;
    field := CASE WHEN field = 0 AND start & 1 = 0 THEN 3 WHEN field = 5 THEN 0 ELSE field + 1 END;
  END LOOP;
END $$;

-- The acked seq of an epoch: every seq from 1 to this one is stored or declared lost. 0 while seq 1 is missing.
CREATE FUNCTION store.acked_seq(received int4multirange, lost int4multirange) RETURNS int4
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce((SELECT upper(r) - 1 FROM unnest(received + lost) AS r WHERE r @> 1), 0)
$$;

-- How many seqs a set holds.
CREATE FUNCTION store.count_seqs(seqs int4multirange) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(sum(upper(r) - lower(r)), 0)::int4 FROM unnest(seqs) AS r
$$;

-- The highest seq that an epoch can have reached: 1,000,000 and 10,000 a second more than the last one that it announced, of which records were
-- last stored at last_new_at.
CREATE FUNCTION store.plausible_seq(last_seq int4, last_new_at timestamptz) RETURNS int4 LANGUAGE sql STABLE PARALLEL SAFE
RETURN least(2147483646, last_seq + 1000000 + 10000 * greatest(0, extract(epoch FROM now() - last_new_at)))::int4;

-- A sum as the largest integer that fits. Agents send bounded numbers, and one that lies must not keep others from being read or merged.
-- Null if there is nothing to add.
CREATE FUNCTION store.fit_int8(n numeric) RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN n > 9223372036854775807 THEN 9223372036854775807 ELSE n END::int8;

-- The share of a time in which tasks waited; null if the time was not measured. A wait that is too short to say is null.
CREATE FUNCTION store.share_waited(waited_us int8, of_us int8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(waited_us, 0)::float8 / nullif(of_us, 0);

-- Two sums together, as far as they fit; null only if both are.
CREATE FUNCTION store.add_int8(a int8, b int8) RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a ELSE store.fit_int8(a::numeric + b) END;

-- Bounds of a rate of which `hits` of `trials` were seen: Wilson's interval with 95 % confidence. Null without trials. Not STRICT, which would keep
-- the planner from inlining them: each call would run a statement.
CREATE FUNCTION store.wilson_low(hits float8, trials float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN trials > 0 AND hits IS NOT NULL THEN greatest(0, (hits + 1.920729 - 1.96 * sqrt(greatest(0, hits * (trials - hits) / trials) + 0.960365)) / (trials + 3.841459)) END;
CREATE FUNCTION store.wilson_high(hits float8, trials float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN trials > 0 AND hits IS NOT NULL THEN least(1, (hits + 1.920729 + 1.96 * sqrt(greatest(0, hits * (trials - hits) / trials) + 0.960365)) / (trials + 3.841459)) END;
