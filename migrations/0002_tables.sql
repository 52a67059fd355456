-- The tables. Columns that several tables share:
--
--   day            the UTC date of the record's time (start of the epoch plus the record's offset): a pure function of the
--                  record, so that a redelivered record meets its first copy in the same partition
--   container_key  the first 8 bytes of sha256(container or sandbox id), as a signed integer
--   context_id     an epoch, and the versions of runtime, kubelet and agent and the agent's settings during a part of it
--
-- A unique index named …_once is the second check, after the epoch's set of received seqs, that a record is stored once. Where each node adds in ascending
-- order, pages are filled: only a record that comes late splits one. Postgres keeps them full only if an entry has no more than 16 bytes of columns.
-- The two tables with a row per event or change keep kinds as small integers; the others keep text.

-- queues and max_queues (the most there ever were); event_retention_days (events, changes, minutes); finding_retention_days (the rest).
CREATE TABLE store.setting (
  key text PRIMARY KEY,
  value jsonb NOT NULL
);
INSERT INTO store.setting (key, value) VALUES ('event_retention_days', '14'), ('finding_retention_days', '400');

-- When `plegwatch maintain` last did everything that was due. A new database needs nothing yet.
CREATE TABLE store.maintenance (
  only_row bool PRIMARY KEY DEFAULT true CHECK (only_row),
  succeeded_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO store.maintenance DEFAULT VALUES;

--   uid                         that of its Namespace kube-system, which says whether a cluster is the one that has this name; null while it is not known
--   signatures_required_since   since when no unsigned batch of it is stored; null while nodes without a key may send some
--   otlp_since                  since when its evidence is sent to OpenTelemetry; null while they are not
CREATE TABLE store.cluster (
  cluster_id int2 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  uid text,
  signatures_required_since timestamptz,
  otlp_since timestamptz
);

-- A Node of the cluster, or a node of which an agent reported.
--   first_seen                            when the first batch of its agents was stored; null before
--   last_seen                             the last moment at which an agent of it is known to have run: that of its epochs
--   node_uid                              of the Node, as the cluster says; null while that is not known
--   replaced_at                           when the present Node was created, if another one had its name before: agents that ran earlier were those of
--                                         another machine
--   last_unsigned_at                      when an unsigned batch of it was last stored; null if none ever was
--   claimed_at                            when an agent of it reported before the cluster's controller knew it; null if it was known
--   incarnation, context_no, context_id   of the latest incarnation that reported
--   pleg_condition_at, is_pleg_unhealthy  the time of its latest node_condition, and whether that one says that PLEG is not healthy
--   day_rows                              how many rows of it were stored on rows_day, a day of UTC
CREATE TABLE store.node (
  node_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cluster_id int2 NOT NULL REFERENCES store.cluster,
  name text NOT NULL,
  node_uid text,
  first_seen timestamptz,
  last_seen timestamptz,
  last_unsigned_at timestamptz,
  claimed_at timestamptz,
  replaced_at timestamptz,
  incarnation int4 NOT NULL DEFAULT 0,
  context_no int4 NOT NULL DEFAULT 0,
  context_id int4,
  pleg_condition_at timestamptz,
  is_pleg_unhealthy bool NOT NULL DEFAULT false,
  rows_day date,
  day_rows int4 NOT NULL DEFAULT 0,
  UNIQUE (cluster_id, name)
) WITH (fillfactor = 50);
CREATE INDEX node_pleg_unhealthy ON store.node (cluster_id) WHERE is_pleg_unhealthy;
CREATE INDEX node_claimed_at ON store.node (cluster_id, claimed_at) WHERE claimed_at IS NOT NULL;

-- The keys with which nodes sign their batches: agents enrolled them with a token of their pod. Each is valid as long as its token.
CREATE TABLE store.node_key (
  node_id int4 NOT NULL REFERENCES store.node ON DELETE CASCADE,
  cluster_id int2 NOT NULL,
  public_key bytea NOT NULL,
  enrolled_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  pod_uid text NOT NULL,
  node_uid text,
  PRIMARY KEY (node_id, public_key)
);
CREATE INDEX node_key_cluster ON store.node_key (cluster_id);

-- The keys that nodes signed with, also those that are no longer valid, each with the controller's signature under it: whoever checks stored records
-- needs no key but the controller's. The thousand latest of a node.
CREATE TABLE store.node_signer (
  node_id int4 NOT NULL REFERENCES store.node ON DELETE CASCADE,
  cluster_id int2 NOT NULL,
  public_key bytea NOT NULL,
  signature bytea NOT NULL,
  enrolled_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (node_id, public_key)
);

CREATE TABLE store.context (
  context_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  epoch uuid NOT NULL,
  context_no int4 NOT NULL,
  runtime_name text NOT NULL,
  runtime_version text NOT NULL,
  kubelet_version text NOT NULL,
  agent_version text NOT NULL,
  relist_period_us int8 NOT NULL,
  overdue_after_us int8 NOT NULL,
  missed_after_us int8 NOT NULL,
  late_after_us int8 NOT NULL,
  UNIQUE (node_id, epoch, context_no)
);

-- One run of an agent. Epochs are unique per node: they are public, and no node may keep the epoch of another one out.
--   incarnation                    orders the epochs of a node: what its agent claims, as far as that can be
--   claimed_incarnation            what its agent claims
--   node_uid                       of the Node that it ran on, once another one has its name; empty until then, and where no UID was known
--   started_at                     fixed when the epoch is first seen; every record's time is this plus the record's offset
--   started_mono                   the same moment on the monotonic clock of boot_id, in microseconds
--   last_seq                       the highest seq known to exist
--   last_batch_seq, last_batch_at  the highest `last` of a batch, and when that batch was sealed
--   last_record_at                 the time of the latest stored record
--   complete_through               everything the agent wrote up to here is stored or declared lost
--   decided_through                of everything that happened before, the stored records say whether its event came
--   delay_us                       the shortest time lately between when a batch was sealed, by the times of the epoch, and when it was stored:
--                                  the way through the queue, and what the node's clock differs from that of the database
--   clock_moved_us                 how far the wall clock of the node was moved since the epoch was dated
--   last_seen                      the last moment at which its agent is known to have run, on the clock of the database: a batch that waited
--                                  in a queue says nothing of when it was stored
--   first_stored_at                when it was first seen
--   last_stored_at                 when a batch of it was last stored
--   last_new_at                    when a batch of it with records was last stored; the start of the epoch before that
--   is_attributed                  whether every stored batch of it was signed
--   head_seq, _from, _us, head, head_hints   the signed head with the highest seq: see store.signed_head; null where no signed batch has come
--   head_kept_seq, head_kept_at    the last one that was kept there, and when; at first 0, and when the first head came
--   kubelet_seen_from, _to         the first and the last stored scrape of the kubelet: in between, its mode is that of the mode changes
CREATE TABLE store.epoch (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  epoch uuid NOT NULL,
  prev uuid,
  incarnation int4 NOT NULL,
  claimed_incarnation int4 NOT NULL,
  node_uid text NOT NULL,
  boot_id text NOT NULL,
  started_mono int8 NOT NULL,
  started_at timestamptz NOT NULL,
  ack_generation int4 NOT NULL,
  last_seq int4 NOT NULL,
  received int4multirange NOT NULL DEFAULT '{}',
  lost int4multirange NOT NULL DEFAULT '{}',
  last_batch_seq int4 NOT NULL DEFAULT 0,
  last_batch_at timestamptz,
  last_record_at timestamptz,
  complete_through timestamptz,
  decided_through timestamptz,
  kubelet_seen_from timestamptz,
  kubelet_seen_to timestamptz,
  delay_us int8,
  clock_moved_us int8,
  last_seen timestamptz NOT NULL,
  first_stored_at timestamptz NOT NULL DEFAULT now(),
  last_stored_at timestamptz NOT NULL DEFAULT now(),
  last_new_at timestamptz NOT NULL,
  is_attributed bool NOT NULL DEFAULT true,
  closed_at timestamptz,
  close_cause text,
  head_seq int4,
  head_from int4,
  head_us int8,
  head bytea,
  head_hints bytea,
  head_kept_seq int4,
  head_kept_at timestamptz,
  PRIMARY KEY (node_id, epoch)
) WITH (fillfactor = 50);
CREATE INDEX epoch_open ON store.epoch (node_id, incarnation) WHERE closed_at IS NULL;
CREATE INDEX epoch_incarnation ON store.epoch (node_id, incarnation);

-- Heads of record chains that nodes signed, as far as they are kept: one an hour, one in 256 records, and the last of each chain; of days whose events are gone one
-- a day. The latest of an epoch is in store.epoch.
--   from_seq   the seq that the chain begins at
--   record_us  when the record with this seq was, in microseconds since the epoch began
--   head       the two digests of the records, by how long they are kept: events, findings; and the signature of the node
--   hints      a byte for each of the last seqs up to this one: see hintOf in src/protocol/recordChain.ts
CREATE TABLE store.signed_head (
  node_id int4 NOT NULL REFERENCES store.node ON DELETE CASCADE,
  epoch uuid NOT NULL,
  seq int4 NOT NULL,
  from_seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  stored_at timestamptz NOT NULL DEFAULT now(),
  record_us int8 NOT NULL,
  head bytea NOT NULL,
  hints bytea NOT NULL,
  PRIMARY KEY (node_id, epoch, seq, from_seq)
);

-- The state of an epoch and its node by which ingest judges a batch with the seqs first to last, none if last is below first. The caller has locked
-- the epoch. The planner inlines it.
--   fresh             the seqs of the batch that were not received yet; fills_gap: some of them had been declared lost
--   context_id        null where the context of the batch is not stored yet
--   is_superseded     the node has a later incarnation
--   received_through  the highest seq that is stored; plausible_seq: the highest that the epoch can have reached
--   rows_today        how many rows of the node were stored today
CREATE FUNCTION store.known_of_batch(e store.epoch, n store.node, first int4, last int4, no int4)
RETURNS TABLE (node_id int4, started_us float8, now_us float8, fresh int4multirange, fills_gap bool, context_id int4, incarnation int4,
               is_superseded bool, received_through int4, plausible_seq int4, rows_today int4) LANGUAGE sql STABLE AS $$
  SELECT e.node_id, (extract(epoch FROM e.started_at) * 1000000)::float8, (extract(epoch FROM now()) * 1000000)::float8, s.fresh, s.fresh && e.lost,
         x.context_id, e.incarnation, e.incarnation < n.incarnation, coalesce(upper(e.received) - 1, 0),
         store.plausible_seq(e.last_seq, e.last_new_at), CASE WHEN n.rows_day = (now() AT TIME ZONE 'UTC')::date THEN n.day_rows ELSE 0 END
  FROM (SELECT CASE WHEN last < first THEN '{}' ELSE int4multirange(int4range(first, last, '[]')) - e.received END AS fresh) s
  LEFT JOIN store.context x ON x.node_id = e.node_id AND x.epoch = e.epoch AND x.context_no = no
$$;

-- The boots of a node whose agents run at the same time, as one of another machine with the same name. Each was known to run three minutes after both had
-- been stored, and wrote after the other one had started: neither holds of a boot that ended, however late its batches are stored. An epoch that was
-- dated by the clock of the database although its first batch may have waited says nothing.
CREATE FUNCTION store.boots_at_once(of_node int4) RETURNS TABLE (boot_id text, started_at timestamptz) LANGUAGE sql STABLE AS $$
  WITH boot AS (
    SELECT e.boot_id, min(e.started_at) AS started_at, min(e.first_stored_at) AS stored_at, max(e.last_seen) AS last_seen, max(e.last_batch_at) AS wrote_at
    FROM store.epoch e
    WHERE e.node_id = of_node AND e.boot_id <> '' AND e.last_seen > now() - interval '1 day' AND e.clock_moved_us > -86400000000
    GROUP BY e.boot_id
    HAVING max(e.last_seen) > now() - store.silent_after()
  )
  SELECT b.boot_id, b.started_at
  FROM boot b
  WHERE EXISTS (
    SELECT FROM boot o
    WHERE o.boot_id <> b.boot_id AND least(b.last_seen, o.last_seen) >= greatest(b.stored_at, o.stored_at) + store.silent_after()
      AND least(b.wrote_at, o.wrote_at) > greatest(b.started_at, o.started_at))
$$;

-- flags: the CRI's event type in the low byte, 256 replayed, 512 has_sandbox_status, 1024 is_sandbox. For an event that says how its container ended:
-- the reason from bit 12 (see store.exit_reason; 0 for no exit), the exit code from bit 16 with 2048 if it is known.
CREATE TABLE store.container_event (
  received_at timestamptz NOT NULL,
  created_ns int8 NOT NULL,
  container_key int8 NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  flags int4 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX container_event_once ON store.container_event (node_id, context_id, seq, day) WITH (fillfactor = 100);
CREATE INDEX container_event_received_at ON store.container_event USING brin (received_at);
CREATE INDEX container_event_container ON store.container_event (container_key);
-- Containers that failed are few. A condition on exit_reason that leaves out Completed uses it.
CREATE INDEX container_event_failed ON store.container_event (received_at) WHERE store.exit_reason(flags) <> 'Completed';

-- The identity of a container or sandbox, once for each day that mentions it, so that it is dropped with that day.
--   container_id     text, and not the bytes that most ids spell: only a plain column can be searched by an index under row-level security
--   sandbox_key      of a sandbox, its own container_key; null while it is not known
--   pod_uid          as store.uid_bytes packs it
--   container_name   empty for a sandbox; null while it is not known
CREATE TABLE store.container (
  container_key int8 NOT NULL,
  sandbox_key int8,
  node_id int4 NOT NULL,
  day date NOT NULL,
  attempt int4,
  cluster_id int2 NOT NULL,
  container_id text NOT NULL,
  pod_uid bytea,
  pod_namespace text,
  pod_name text,
  container_name text
) PARTITION BY RANGE (day);
-- The key first, so that an entry has no padding.
CREATE UNIQUE INDEX container_once ON store.container (container_key, node_id, day);
-- Not a hash: the rows of one name, which a node may send without end, would make a chain that each insert walks.
CREATE INDEX container_pod_name ON store.container (pod_name);
CREATE INDEX container_container_id ON store.container USING hash (container_id);

-- states: the old state in bits 0-3, the new one in bits 4-7, 256 is_sandbox.
-- pleg_events: a bit for each event that a kubelet's Generic PLEG makes: 1 started, 2 died, 4 removed, 8 changed.
CREATE TABLE store.relist_change (
  window_from timestamptz NOT NULL,
  window_to timestamptz NOT NULL,
  container_key int8 NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  states int2 NOT NULL,
  pleg_events int2 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX relist_change_once ON store.relist_change (node_id, context_id, seq, day) WITH (fillfactor = 100);
CREATE INDEX relist_change_window_to ON store.relist_change USING brin (window_to);
CREATE INDEX relist_change_container ON store.relist_change (container_key);

-- The figures of one minute, which goes on while nothing happens, up to ten; durations in microseconds.
--   ended_at, wall_at                the end of the minute: its start and its length, and what the node's wall clock showed
--   hist, kubelet_hist               without the empty buckets at the end
--   lists                            the times of each relist, from the minute's start: store.relists_of. If it went on: those of the first and
--                                    of the last two
--   kubelet_*                        from the kubelet's own metrics; null where it was not scraped or did not report them
--   kubelet_intervals, _interval_us  the times between two relists that it counted in its mode at the end of the minute; their sum
--   kubelet_counted_from, _to        the scrapes between which its calls were counted
--   kubelet_sandbox_*, _container_*  its calls that ended, of each list (ListPodSandbox, ListContainers) and each status (PodSandboxStatus,
--                                    ContainerStatus): how many, how many failed (null: none), how long together
--   kubelet_longest_list_us          a lower bound of its longest list
--   kubelet_relist_us                its relists together
--   kubelet_cpu_us                   its processor time between the same scrapes
--   kubelet_resident_bytes           its resident memory at the last scrape
--   kubelet_start_hist, _stop_hist   kubelet lag of the starts and stops that its own status was seen to show, as hist; bounds: store.kubelet_lag_bounds();
--                                    null where there were none
--   sandboxes, containers            what the last relist listed; exited_*: how many of them had exited; *_list_bytes: the size of its answers
--   pressure_us                      for how long the pressure of the node was measured; null where its kernel does not report it
--   *_some_us, *_full_us             of that, how long at least one task, or all that were not idle, waited for cpu, io or memory; null up to
--                                    a hundredth
--   statuses_asked, _slow            statuses of sandboxes and containers that the agent asked for because relists were slow, and how many of them
--                                    took a second or longer; null where it asked for none
--   slow_status_*                    the slowest of those, or the one that a list waits for: its container_key, when it was asked for, and how long it
--                                    took or was waited for
--   hang_*                           a list call of the agent that was not answered within five seconds; null where none hung. Every minute of a hang
--                                    repeats it: which call, from when to when (null while it lasts), how long it was waited for, the verdict
--                                    (container and pod: that of slow_status_key), how many containers and sandboxes were listed before it, of how
--                                    many the status was asked for during it, how many were answered within a second, and how many were not
CREATE TABLE store.relist_minute (
  minute timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  wall_at timestamptz NOT NULL,
  span_us int8 NOT NULL,
  covered_us int8 NOT NULL,
  max_us int8 NOT NULL,
  kubelet_counted_from timestamptz,
  kubelet_counted_to timestamptz,
  kubelet_list_p99_ms float8,
  kubelet_interval_us int8,
  kubelet_relist_us int8,
  kubelet_longest_list_us int8,
  kubelet_cpu_us int8,
  kubelet_resident_bytes int8,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  relists int4 NOT NULL,
  errors int4 NOT NULL,
  sandboxes int4 NOT NULL,
  containers int4 NOT NULL,
  exited_sandboxes int4 NOT NULL,
  exited_containers int4 NOT NULL,
  sandbox_list_bytes int4 NOT NULL,
  container_list_bytes int4 NOT NULL,
  expected int4 NOT NULL,
  matched int4 NOT NULL,
  unobservable int4 NOT NULL,
  kubelet_relists int4,
  kubelet_intervals int4,
  kubelet_last_seen_age_ms int4,
  kubelet_discarded int4,
  kubelet_stream_errors int4,
  kubelet_sandbox_lists int4,
  kubelet_container_lists int4,
  kubelet_sandbox_statuses int4,
  kubelet_container_statuses int4,
  kubelet_sandbox_list_errors int4,
  kubelet_container_list_errors int4,
  kubelet_sandbox_status_errors int4,
  kubelet_container_status_errors int4,
  kubelet_sandbox_list_us int4,
  kubelet_container_list_us int4,
  kubelet_sandbox_status_us int4,
  kubelet_container_status_us int4,
  pressure_us int4,
  cpu_some_us int4,
  io_some_us int4,
  io_full_us int4,
  memory_some_us int4,
  memory_full_us int4,
  cluster_id int2 NOT NULL,
  hist int2[] NOT NULL,
  kubelet_hist int2[],
  kubelet_start_hist int2[],
  kubelet_stop_hist int2[],
  lists bytea NOT NULL,
  statuses_asked int4,
  statuses_slow int4,
  slow_status_key int8,
  slow_status_at timestamptz,
  slow_status_us int8,
  slow_status_timed_out bool,
  hang_from timestamptz,
  hang_to timestamptz,
  hang_waited_us int8,
  hang_listed int4,
  hang_asked int4,
  hang_quick int4,
  hang_unanswered int4,
  hang_call text,
  hang_verdict text
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX relist_minute_once ON store.relist_minute (node_id, context_id, seq, day) WITH (fillfactor = 100);
CREATE INDEX relist_minute_minute ON store.relist_minute USING brin (minute);
CREATE INDEX relist_minute_node ON store.relist_minute (node_id, minute) WITH (fillfactor = 100);
-- The condition of store.pleg_verdict. Few minutes are slow.
CREATE INDEX relist_minute_slow ON store.relist_minute (node_id, minute)
  WHERE kubelet_counted_to IS NOT NULL AND (kubelet_hist[12] > 0 OR kubelet_last_seen_age_ms > 10000);

-- For plegwatch.status_checks.
CREATE INDEX relist_minute_statuses ON store.relist_minute (node_id, minute) WHERE statuses_asked IS NOT NULL;

-- For store.list_hang.
CREATE INDEX relist_minute_hang ON store.relist_minute (node_id, hang_from) WHERE hang_from IS NOT NULL;

-- Sums of the minutes of an hour, for answers over days: reading a week of it takes a sixtieth of reading the minutes, and it is kept longer.
--   hour                    of UTC
--   minute_bits             a bit for each minute of the hour that a row is about: of agents that follow one another in a minute, both have it
--   listed_us               of span_us, the minutes with a relist
--   kubelet_*, *_us         null where none of the minutes has them; ages, sizes, errors since the kubelet's start and p99 are the greatest of a minute
--   kubelet_counted_us      how long its calls were counted; _cpu_counted_us: with its processor time
-- What answers over weeks add up is first: of each of millions of rows only these columns are unpacked.
CREATE TABLE store.relist_hour (
  hour timestamptz NOT NULL,
  span_us int8 NOT NULL,
  covered_us int8 NOT NULL,
  matched int8 NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  minute_bits int8 NOT NULL,
  listed_us int8 NOT NULL,
  max_us int8 NOT NULL,
  relists int8 NOT NULL,
  errors int8 NOT NULL,
  expected int8 NOT NULL,
  unobservable int8 NOT NULL,
  kubelet_relists int8,
  kubelet_last_seen_age_ms int8,
  kubelet_discarded int8,
  kubelet_stream_errors int8,
  kubelet_intervals int8,
  kubelet_interval_us int8,
  kubelet_counted_us int8,
  kubelet_relist_us int8,
  kubelet_sandbox_lists int8,
  kubelet_container_lists int8,
  kubelet_sandbox_statuses int8,
  kubelet_container_statuses int8,
  kubelet_sandbox_list_errors int8,
  kubelet_container_list_errors int8,
  kubelet_sandbox_status_errors int8,
  kubelet_container_status_errors int8,
  kubelet_sandbox_list_us int8,
  kubelet_container_list_us int8,
  kubelet_sandbox_status_us int8,
  kubelet_container_status_us int8,
  kubelet_longest_list_us int8,
  kubelet_cpu_us int8,
  kubelet_cpu_counted_us int8,
  kubelet_resident_bytes int8,
  pressure_us int8,
  cpu_some_us int8,
  io_some_us int8,
  io_full_us int8,
  memory_some_us int8,
  memory_full_us int8,
  kubelet_list_p99_ms float8,
  sandboxes int4 NOT NULL,
  containers int4 NOT NULL,
  exited_sandboxes int4 NOT NULL,
  exited_containers int4 NOT NULL,
  sandbox_list_bytes int4 NOT NULL,
  container_list_bytes int4 NOT NULL,
  hist int4[] NOT NULL,
  kubelet_hist int4[],
  kubelet_start_hist int4[],
  kubelet_stop_hist int4[]
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX relist_hour_once ON store.relist_hour (node_id, context_id, hour, day);
CREATE INDEX relist_hour_hour ON store.relist_hour USING brin (hour, day);

-- Adds minutes to their hours, in the statement that stores them: a record is stored once, so it is added once. Its node is locked meanwhile, so nothing else
-- adds to the same hours. Runs as the owner, so that nobody needs a right to change hours: a controller adds minutes, which are checked.
CREATE FUNCTION store.add_to_hours() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO store.relist_hour AS h (
    hour, day, node_id, context_id, cluster_id, minute_bits, span_us, listed_us, covered_us, max_us, relists, errors, expected, matched,
    unobservable, sandboxes, containers, exited_sandboxes, exited_containers, sandbox_list_bytes, container_list_bytes, hist, kubelet_relists, kubelet_hist, kubelet_last_seen_age_ms, kubelet_discarded, kubelet_stream_errors,
    kubelet_list_p99_ms, kubelet_intervals, kubelet_interval_us, kubelet_counted_us, kubelet_relist_us, kubelet_longest_list_us,
    kubelet_cpu_us, kubelet_cpu_counted_us, kubelet_resident_bytes,
    kubelet_sandbox_lists, kubelet_container_lists, kubelet_sandbox_statuses, kubelet_container_statuses, kubelet_sandbox_list_errors,
    kubelet_container_list_errors, kubelet_sandbox_status_errors, kubelet_container_status_errors, kubelet_sandbox_list_us, kubelet_container_list_us,
    kubelet_sandbox_status_us, kubelet_container_status_us, pressure_us, cpu_some_us, io_some_us, io_full_us, memory_some_us, memory_full_us,
    kubelet_start_hist, kubelet_stop_hist)
  SELECT date_trunc('hour', m.minute, 'UTC'), m.day, m.node_id, m.context_id, m.cluster_id,
         bit_or(b.bits),
         store.fit_int8(sum(m.span_us)), store.fit_int8(coalesce(sum(m.span_us) FILTER (WHERE m.relists > 0), 0)), store.fit_int8(sum(m.covered_us)),
         max(m.max_us), sum(m.relists), sum(m.errors), sum(m.expected), sum(m.matched), sum(m.unobservable),
         max(m.sandboxes), max(m.containers), max(m.exited_sandboxes), max(m.exited_containers), max(m.sandbox_list_bytes),
         max(m.container_list_bytes), store.hist_sum(m.hist::int4[]),
         sum(m.kubelet_relists), store.hist_sum(m.kubelet_hist::int4[]), max(m.kubelet_last_seen_age_ms), sum(m.kubelet_discarded),
         max(m.kubelet_stream_errors), max(m.kubelet_list_p99_ms), sum(m.kubelet_intervals), store.fit_int8(sum(m.kubelet_interval_us)),
         store.fit_int8(sum(c.us)), store.fit_int8(sum(m.kubelet_relist_us)), max(m.kubelet_longest_list_us),
         store.fit_int8(sum(m.kubelet_cpu_us)), store.fit_int8(sum(c.us) FILTER (WHERE m.kubelet_cpu_us IS NOT NULL)), max(m.kubelet_resident_bytes),
         sum(m.kubelet_sandbox_lists), sum(m.kubelet_container_lists), sum(m.kubelet_sandbox_statuses), sum(m.kubelet_container_statuses),
         sum(m.kubelet_sandbox_list_errors), sum(m.kubelet_container_list_errors), sum(m.kubelet_sandbox_status_errors),
         sum(m.kubelet_container_status_errors), sum(m.kubelet_sandbox_list_us), sum(m.kubelet_container_list_us), sum(m.kubelet_sandbox_status_us),
         sum(m.kubelet_container_status_us), sum(m.pressure_us), sum(m.cpu_some_us), sum(m.io_some_us), sum(m.io_full_us), sum(m.memory_some_us),
         sum(m.memory_full_us), store.hist_sum(m.kubelet_start_hist::int4[]), store.hist_sum(m.kubelet_stop_hist::int4[])
  FROM added m, LATERAL (SELECT extract(epoch FROM m.kubelet_counted_to - m.kubelet_counted_from) * 1000000 AS us) c,
       -- The minutes of its hour that the row is about.
       LATERAL (SELECT (extract(epoch FROM m.minute) / 60 % 60)::int4 AS first,
                       (extract(epoch FROM store.minutes_to(m.minute, m.ended_at) - m.minute) / 60)::int4 AS minutes) f,
       LATERAL (SELECT ((1::int8 << least(60, f.first + f.minutes)) - 1) & -(1::int8 << f.first) AS bits) b
  GROUP BY 1, m.day, m.node_id, m.context_id, m.cluster_id
  ON CONFLICT (node_id, context_id, hour, day) DO UPDATE SET
    minute_bits = h.minute_bits | excluded.minute_bits,
    span_us = store.add_int8(h.span_us, excluded.span_us),
    listed_us = store.add_int8(h.listed_us, excluded.listed_us),
    covered_us = store.add_int8(h.covered_us, excluded.covered_us),
    expected = store.add_int8(h.expected, excluded.expected),
    matched = store.add_int8(h.matched, excluded.matched),
    unobservable = store.add_int8(h.unobservable, excluded.unobservable),
    relists = store.add_int8(h.relists, excluded.relists),
    errors = store.add_int8(h.errors, excluded.errors),
    max_us = greatest(h.max_us, excluded.max_us),
    sandboxes = greatest(h.sandboxes, excluded.sandboxes),
    containers = greatest(h.containers, excluded.containers),
    exited_sandboxes = greatest(h.exited_sandboxes, excluded.exited_sandboxes),
    exited_containers = greatest(h.exited_containers, excluded.exited_containers),
    sandbox_list_bytes = greatest(h.sandbox_list_bytes, excluded.sandbox_list_bytes),
    container_list_bytes = greatest(h.container_list_bytes, excluded.container_list_bytes),
    hist = store.hist_add(h.hist, excluded.hist),
    kubelet_relists = store.add_int8(h.kubelet_relists, excluded.kubelet_relists),
    kubelet_discarded = store.add_int8(h.kubelet_discarded, excluded.kubelet_discarded),
    kubelet_intervals = store.add_int8(h.kubelet_intervals, excluded.kubelet_intervals),
    kubelet_interval_us = store.add_int8(h.kubelet_interval_us, excluded.kubelet_interval_us),
    kubelet_counted_us = store.add_int8(h.kubelet_counted_us, excluded.kubelet_counted_us),
    kubelet_relist_us = store.add_int8(h.kubelet_relist_us, excluded.kubelet_relist_us),
    kubelet_sandbox_lists = store.add_int8(h.kubelet_sandbox_lists, excluded.kubelet_sandbox_lists),
    kubelet_container_lists = store.add_int8(h.kubelet_container_lists, excluded.kubelet_container_lists),
    kubelet_sandbox_statuses = store.add_int8(h.kubelet_sandbox_statuses, excluded.kubelet_sandbox_statuses),
    kubelet_container_statuses = store.add_int8(h.kubelet_container_statuses, excluded.kubelet_container_statuses),
    kubelet_sandbox_list_errors = store.add_int8(h.kubelet_sandbox_list_errors, excluded.kubelet_sandbox_list_errors),
    kubelet_container_list_errors = store.add_int8(h.kubelet_container_list_errors, excluded.kubelet_container_list_errors),
    kubelet_sandbox_status_errors = store.add_int8(h.kubelet_sandbox_status_errors, excluded.kubelet_sandbox_status_errors),
    kubelet_container_status_errors = store.add_int8(h.kubelet_container_status_errors, excluded.kubelet_container_status_errors),
    kubelet_sandbox_list_us = store.add_int8(h.kubelet_sandbox_list_us, excluded.kubelet_sandbox_list_us),
    kubelet_container_list_us = store.add_int8(h.kubelet_container_list_us, excluded.kubelet_container_list_us),
    kubelet_sandbox_status_us = store.add_int8(h.kubelet_sandbox_status_us, excluded.kubelet_sandbox_status_us),
    kubelet_container_status_us = store.add_int8(h.kubelet_container_status_us, excluded.kubelet_container_status_us),
    pressure_us = store.add_int8(h.pressure_us, excluded.pressure_us),
    cpu_some_us = store.add_int8(h.cpu_some_us, excluded.cpu_some_us),
    io_some_us = store.add_int8(h.io_some_us, excluded.io_some_us),
    io_full_us = store.add_int8(h.io_full_us, excluded.io_full_us),
    memory_some_us = store.add_int8(h.memory_some_us, excluded.memory_some_us),
    memory_full_us = store.add_int8(h.memory_full_us, excluded.memory_full_us),
    kubelet_cpu_us = store.add_int8(h.kubelet_cpu_us, excluded.kubelet_cpu_us),
    kubelet_cpu_counted_us = store.add_int8(h.kubelet_cpu_counted_us, excluded.kubelet_cpu_counted_us),
    kubelet_hist = coalesce(store.hist_add(h.kubelet_hist, excluded.kubelet_hist), h.kubelet_hist, excluded.kubelet_hist),
    kubelet_start_hist = coalesce(store.hist_add(h.kubelet_start_hist, excluded.kubelet_start_hist), h.kubelet_start_hist, excluded.kubelet_start_hist),
    kubelet_stop_hist = coalesce(store.hist_add(h.kubelet_stop_hist, excluded.kubelet_stop_hist), h.kubelet_stop_hist, excluded.kubelet_stop_hist),
    kubelet_last_seen_age_ms = greatest(h.kubelet_last_seen_age_ms, excluded.kubelet_last_seen_age_ms),
    kubelet_stream_errors = greatest(h.kubelet_stream_errors, excluded.kubelet_stream_errors),
    kubelet_longest_list_us = greatest(h.kubelet_longest_list_us, excluded.kubelet_longest_list_us),
    kubelet_resident_bytes = greatest(h.kubelet_resident_bytes, excluded.kubelet_resident_bytes),
    kubelet_list_p99_ms = greatest(h.kubelet_list_p99_ms, excluded.kubelet_list_p99_ms);
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION store.add_to_hours() FROM PUBLIC;
CREATE TRIGGER add_to_hours AFTER INSERT ON store.relist_minute REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION store.add_to_hours();

-- Immutable. The identity is copied as text because a finding outlives the container's partition.
CREATE TABLE store.finding (
  finding_id uuid NOT NULL,
  detected_at timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  kind text NOT NULL,
  event_type text,
  cause text NOT NULL,
  container_id text,
  pod_uid text,
  pod_namespace text,
  pod_name text,
  container_name text,
  window_from timestamptz,
  window_to timestamptz,
  occurred_at timestamptz,
  lateness_us int8,
  delivery_us int8,
  proof jsonb NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX finding_once ON store.finding (node_id, context_id, seq, day);
CREATE INDEX finding_finding_id ON store.finding (finding_id);
CREATE INDEX finding_detected_at ON store.finding (node_id, detected_at);
-- An event looks up the misses of its container. They are few beside the other findings, and most nodes have none.
CREATE INDEX finding_missed ON store.finding (node_id, container_id, event_type) WHERE kind = 'missed';

-- Later knowledge about a finding. Insert only, so that the order of arrival does not matter.
--   resolved, overdue            from the agent, or from an event of another epoch
--   lag_min, lag_max             value_ms: bounds of the status lag
--   lag_anomalous                value_ms: 1 or 0
--   lag_reason                   note: why there is no lag
-- Several events may resolve one finding, in any order; the earliest counts. Hence `at` in the key.
CREATE TABLE store.finding_update (
  finding_id uuid NOT NULL,
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  day date NOT NULL,
  what text NOT NULL,
  at timestamptz NOT NULL,
  value_ms float8,
  note text
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX finding_update_once ON store.finding_update (node_id, finding_id, what, at, day);

-- A subscription; day is that of opened_at. Every record of a session repeats what is known of it, so their order does not matter.
CREATE TABLE store.stream_session (
  node_id int4 NOT NULL,
  epoch uuid NOT NULL,
  session_no int4 NOT NULL,
  day date NOT NULL,
  cluster_id int2 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  opened_at timestamptz NOT NULL,
  armed_at timestamptz,
  closed_at timestamptz,
  code text,
  message text,
  events int8 NOT NULL,
  replayed int8 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX stream_session_once ON store.stream_session (node_id, epoch, session_no, day);

CREATE TABLE store.mode_change (
  at timestamptz NOT NULL,
  not_before timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  model text NOT NULL,
  from_mode text NOT NULL,
  to_mode text NOT NULL,
  reason text NOT NULL,
  proof jsonb NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX mode_change_once ON store.mode_change (node_id, context_id, seq, day);
CREATE INDEX mode_change_at ON store.mode_change (node_id, at);

-- PLEG-related transitions of the Node's Ready condition, from the controller's watch.
CREATE TABLE store.node_condition (
  at timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  message text NOT NULL,
  pleg_seen_ago_ms int8,
  threshold_ms int8
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX node_condition_once ON store.node_condition (node_id, at, day);

-- Every change of the Node's Ready condition once it was not True, from the controller's watch. The latest row of a Node stays as long as the Node.
--   causes   why it is not Ready, in the words of notReadyCauses.ts; empty for a Node that is
CREATE TABLE store.ready_change (
  node_id int4 NOT NULL REFERENCES store.node ON DELETE CASCADE,
  cluster_id int2 NOT NULL,
  at timestamptz NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  causes text[] NOT NULL,
  PRIMARY KEY (node_id, at)
);

-- The distinctive fields of a Node, from the controller's watch: a row for each change. `labels` has those with a key that the controller
-- was set to store. The latest row of a Node stays as long as the Node.
CREATE TABLE store.node_info (
  node_id int4 NOT NULL REFERENCES store.node ON DELETE CASCADE,
  cluster_id int2 NOT NULL,
  at timestamptz NOT NULL,
  labels jsonb NOT NULL,
  os_image text NOT NULL,
  kernel_version text NOT NULL,
  PRIMARY KEY (node_id, at)
);

-- to_at is null while the gap is open. record_bytes: what arrived in place of a record that cannot be stored.
CREATE TABLE store.gap (
  gap_id uuid NOT NULL,
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  epoch uuid NOT NULL,
  scope text NOT NULL,
  cause text NOT NULL,
  from_at timestamptz NOT NULL,
  to_at timestamptz,
  from_seq int4,
  to_seq int4,
  records int4,
  filled_at timestamptz,
  record_bytes bytea,
  PRIMARY KEY (node_id, gap_id)
);
CREATE INDEX gap_from_at ON store.gap (node_id, from_at);
CREATE INDEX gap_agent ON store.gap (node_id, epoch) WHERE scope IN ('agent', 'spool');
CREATE INDEX gap_unfilled ON store.gap (node_id, epoch, from_seq) WHERE scope = 'seq' AND filled_at IS NULL;

-- The last reported state of each incarnation of a node. It says nothing of the present once a later incarnation has started or the
-- agent is silent; maintenance deletes the earlier ones.
--   kubelet_error     why the last scrape of the kubelet failed, while that leaves its mode unknown
--   kubelet_identity  whether it is certain that the node's kubelet was scraped; null while its mode is not observed
--   pods_api_*        the watch of the kubelet's own status of its pods; null where that is switched off
CREATE TABLE store.node_state (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  incarnation int4 NOT NULL,
  seq int4 NOT NULL,
  stream_state text NOT NULL,
  stream_since timestamptz NOT NULL,
  stream_reason text NOT NULL,
  stream_error text NOT NULL,
  relist_healthy bool NOT NULL,
  relist_reason text NOT NULL,
  model text NOT NULL,
  mode text NOT NULL,
  mode_since timestamptz NOT NULL,
  mode_reason text NOT NULL,
  kubelet_stream_errors int8,
  kubelet_error text,
  kubelet_identity text,
  pods_api_state text,
  pods_api_reason text,
  PRIMARY KEY (node_id, incarnation)
) WITH (fillfactor = 50);

-- Nodes whose report must be written. A writer deletes a row only at the version that it read.
CREATE TABLE store.report_queue (
  node_id int4 PRIMARY KEY REFERENCES store.node,
  cluster_id int2 NOT NULL,
  version int8 NOT NULL DEFAULT 1,
  due_at timestamptz NOT NULL,
  urgent bool NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX report_queue_due_at ON store.report_queue (cluster_id, due_at);

-- The leader of each cluster: every transaction that only a leader may do checks that its term is the latest one.
--   is_contested   the one that began the term had led before, and was deposed while it held its Lease or needed none
CREATE TABLE store.leader (
  cluster_id int2 PRIMARY KEY REFERENCES store.cluster,
  term int4 NOT NULL,
  is_contested bool NOT NULL DEFAULT false,
  began_at timestamptz NOT NULL DEFAULT now()
);

-- Whether everything that agents of a cluster sent is stored at once, as its controllers see it. While none of them says so, an agent of which nothing is
-- stored may report all the same.
--   caught_up_since   from when on it was so without a break
--   said_at           when a controller last said so
CREATE TABLE store.ingest (
  cluster_id int2 PRIMARY KEY REFERENCES store.cluster,
  caught_up_since timestamptz NOT NULL,
  said_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Raises PW001 unless this is the latest term. The next term waits for the transaction that called it.
CREATE FUNCTION store.check_term(of_cluster int4, of_term int4) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM store.leader WHERE cluster_id = of_cluster AND term = of_term FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'term % of this leader has ended', of_term USING ERRCODE = 'PW001';
  END IF;
END $$;

-- The report of each node, so that a new leader neither writes all of them again nor forgets which are due.
--   created_at           when the object was created in Kubernetes
--   status_digest        a digest of the status as last written
--   recheck_at           when the report may change without any new record, as when a miss becomes older than 24 hours
--   mode, stream_state   as last written; null if no agent reported then
--   node_deleted_at      the Node was deleted and the report with it; the history stays
CREATE TABLE store.report (
  node_id int4 PRIMARY KEY REFERENCES store.node,
  cluster_id int2 NOT NULL,
  created_at timestamptz,
  written_at timestamptz,
  status_digest text,
  recheck_at timestamptz,
  mode text,
  stream_state text,
  node_deleted_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX report_recheck_at ON store.report (cluster_id, recheck_at) WHERE recheck_at IS NOT NULL;

-- The conditions of a node's report, so that a new leader keeps lastTransitionTime.
--   is_unproven   of the reason CoverageLow: only because no event came that proves the stream
CREATE TABLE store.report_condition (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  type text NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  message text NOT NULL,
  since timestamptz NOT NULL,
  is_unproven bool NOT NULL DEFAULT false,
  PRIMARY KEY (node_id, type)
);
CREATE INDEX report_condition_incomplete ON store.report_condition (cluster_id) WHERE type = 'EvidenceComplete' AND status = 'False';

-- Container transitions whose pod is read until its status shows them. A row is deleted when the lag is known or never will be.
-- Times are of this database's clock; earliest_at may rest on the node's.
--   sample                   a transition that was announced normally, read to learn the ordinary lag of the kubelet
--   earliest_at, latest_at   bounds of the transition
--   reads                    answers that did not show the transition yet; stale_read_at: when the latest of these reads began
--   pod_matched              one of these answers was of this pod; container_matched: one had this container as the present one
--   due_at                   also keeps other controllers from reading the same pod at the same time
CREATE TABLE store.status_lag_watch (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  finding_id uuid NOT NULL,
  kind text NOT NULL,
  event_type text NOT NULL,
  container_id text NOT NULL,
  pod_uid text NOT NULL,
  pod_namespace text NOT NULL,
  pod_name text NOT NULL,
  container_name text NOT NULL,
  attempt int8 NOT NULL,
  latest_at timestamptz NOT NULL,
  earliest_at timestamptz,
  arrived_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  reads int4 NOT NULL DEFAULT 0,
  pod_matched bool NOT NULL DEFAULT false,
  container_matched bool NOT NULL DEFAULT false,
  stale_read_at timestamptz,
  PRIMARY KEY (node_id, finding_id)
) WITH (fillfactor = 50);
CREATE INDEX status_lag_watch_due_at ON store.status_lag_watch (cluster_id, (kind = 'sample'), due_at);

-- Lags of announced transitions: of samples, kept for two days, and of those on a node whose kubelet fell back and keeps what events told it, kept as long
-- as events. Only the latter have the columns from happened_at on. lag_max_ms is null where the status did not show the transition in time.
CREATE TABLE store.status_lag (
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  at timestamptz NOT NULL,
  event_type text NOT NULL,
  lag_min_ms float8,
  lag_max_ms float8,
  happened_at timestamptz,
  lag_reason text,
  container_id text,
  pod_namespace text,
  pod_name text,
  container_name text
);
CREATE INDEX status_lag_node ON store.status_lag (node_id, at);
CREATE INDEX status_lag_at ON store.status_lag USING brin (at);

-- Refused input. It cannot be attributed: claimed_node is only what the input says. head: its first bytes.
CREATE TABLE store.rejected (
  cluster_id int2 NOT NULL REFERENCES store.cluster,
  hash bytea NOT NULL,
  at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  queue int4 NOT NULL,
  reason text NOT NULL,
  error text NOT NULL,
  claimed_node text NOT NULL,
  bytes int4 NOT NULL,
  head bytea NOT NULL,
  times int8 NOT NULL DEFAULT 1,
  PRIMARY KEY (cluster_id, hash)
);

-- The outbox of records for OpenTelemetry (src/controller/otlp): a row is added with the record, and deleted when that was accepted.
--   what         mode_change or finding, of context_id and seq; finding_resolved, of finding_id; pleg_verdict, of at and ended_at
--   day          of the mode change, the finding, the resolution or the verdict
--   at, ended_at at and to_at of the verdict, which with its day find it by an index
CREATE TABLE store.otlp_outbox (
  outbox_id int8 GENERATED ALWAYS AS IDENTITY,
  added_at timestamptz NOT NULL DEFAULT now(),
  at timestamptz,
  ended_at timestamptz,
  cluster_id int2 NOT NULL,
  node_id int4 NOT NULL,
  day date NOT NULL,
  what text NOT NULL,
  context_id int4,
  seq int4,
  finding_id uuid
);
CREATE INDEX otlp_outbox_order ON store.otlp_outbox (cluster_id, outbox_id);

CREATE FUNCTION store.add_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE TG_TABLE_NAME
    WHEN 'mode_change', 'finding' THEN
      INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what, context_id, seq)
      SELECT a.cluster_id, a.node_id, a.day, TG_TABLE_NAME, a.context_id, a.seq
      FROM added a JOIN store.cluster c ON c.cluster_id = a.cluster_id WHERE c.otlp_since IS NOT NULL ORDER BY a.seq;
    WHEN 'finding_update' THEN
      INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what, finding_id)
      SELECT a.cluster_id, a.node_id, a.day, 'finding_resolved', a.finding_id
      FROM added a JOIN store.cluster c ON c.cluster_id = a.cluster_id WHERE c.otlp_since IS NOT NULL AND a.what = 'resolved' ORDER BY a.at;
    -- The periods of store.pleg_verdict that a row ends.
    WHEN 'relist_minute' THEN
      INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what, at, ended_at)
      SELECT a.cluster_id, a.node_id, a.day, 'pleg_verdict', a.minute, a.kubelet_counted_to
      FROM added a JOIN store.cluster c ON c.cluster_id = a.cluster_id
      WHERE (a.kubelet_hist[12] > 0 OR a.kubelet_last_seen_age_ms > 10000) AND a.kubelet_counted_to IS NOT NULL AND c.otlp_since IS NOT NULL
      ORDER BY a.seq;
    WHEN 'node_condition' THEN
      INSERT INTO store.otlp_outbox (cluster_id, node_id, day, what, at, ended_at)
      SELECT a.cluster_id, a.node_id, ended.day, 'pleg_verdict', ended.at, a.at
      FROM added a JOIN store.cluster c ON c.cluster_id = a.cluster_id
      JOIN LATERAL (
        SELECT k.day, k.at, k.status, k.message FROM store.node_condition k WHERE k.node_id = a.node_id AND k.at < a.at ORDER BY k.at DESC LIMIT 1
      ) ended ON ended.status <> 'True' AND ended.message ~ 'PLEG|\mpleg\M'
      WHERE c.otlp_since IS NOT NULL;
  END CASE;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION store.add_to_outbox() FROM PUBLIC;
CREATE TRIGGER add_to_outbox AFTER INSERT ON store.mode_change REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION store.add_to_outbox();
CREATE TRIGGER add_to_outbox AFTER INSERT ON store.finding REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION store.add_to_outbox();
CREATE TRIGGER add_to_outbox AFTER INSERT ON store.finding_update REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION store.add_to_outbox();
CREATE TRIGGER add_to_outbox AFTER INSERT ON store.relist_minute REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION store.add_to_outbox();
CREATE TRIGGER add_to_outbox AFTER INSERT ON store.node_condition REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION store.add_to_outbox();
