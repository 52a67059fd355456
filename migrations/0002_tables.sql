-- The tables. Columns that several tables share:
--
--   day            the UTC date of the record's time (start of the epoch plus the record's offset): a pure function of the
--                  record, so that a redelivered record meets its first copy in the same partition
--   container_key  the first 8 bytes of sha256(container or sandbox id), as a signed integer
--   context_id     an epoch, and the versions of runtime, kubelet and agent and the agent's settings during a part of it
--
-- A unique index named …_once is the second check, after the epoch's set of received seqs, that a record is stored once.
-- The two tables with a row per event or change keep kinds as small integers; the others keep text.

-- queues and max_queues (the most there ever were); event_retention_days (events, changes, minutes); finding_retention_days (the rest).
CREATE TABLE store.setting (
  key text PRIMARY KEY,
  value jsonb NOT NULL
);
INSERT INTO store.setting (key, value) VALUES ('queues', '16'), ('event_retention_days', '14'), ('finding_retention_days', '400');

CREATE TABLE store.cluster (
  cluster_id int2 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE
);

-- incarnation, context_no and context_id belong to the latest incarnation that reported; they only move forward.
CREATE TABLE store.node (
  node_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cluster_id int2 NOT NULL REFERENCES store.cluster,
  name text NOT NULL,
  node_uid text,
  first_seen timestamptz NOT NULL DEFAULT now(),
  last_seen timestamptz NOT NULL DEFAULT now(),
  incarnation int4 NOT NULL DEFAULT 0,
  context_no int4 NOT NULL DEFAULT 0,
  context_id int4,
  UNIQUE (cluster_id, name)
) WITH (fillfactor = 50);

CREATE TABLE store.context (
  context_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node_id int4 NOT NULL REFERENCES store.node,
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

-- One run of an agent. An epoch belongs to one node for ever, hence the unique index on the epoch alone.
--   started_at                     fixed when the epoch is first seen; every record's time is this plus the record's offset
--   started_mono                   the same moment on the monotonic clock of boot_id, in microseconds
--   last_seq                       the highest seq known to exist
--   last_batch_seq, last_batch_at  the highest `last` of a batch, and when that batch was cut
--   last_record_at                 the time of the latest stored record
--   complete_through               everything the agent wrote up to here is stored or declared lost
--   kubelet_seen_from, _to         the first and the last stored scrape of the kubelet: in between, its mode is that of the mode changes
CREATE TABLE store.epoch (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  epoch uuid NOT NULL,
  prev uuid,
  incarnation int4 NOT NULL,
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
  kubelet_seen_from timestamptz,
  kubelet_seen_to timestamptz,
  last_seen timestamptz NOT NULL,
  closed_at timestamptz,
  close_cause text,
  PRIMARY KEY (node_id, epoch),
  UNIQUE (epoch)
) WITH (fillfactor = 50);
CREATE INDEX epoch_open ON store.epoch (node_id, incarnation) WHERE closed_at IS NULL;
CREATE INDEX epoch_incarnation ON store.epoch (node_id, incarnation);

-- flags: the CRI's event type in the low byte, 256 replayed, 512 has_sandbox_status, 1024 is_sandbox.
CREATE TABLE store.container_event (
  received_at timestamptz NOT NULL,
  created_ns int8 NOT NULL,
  container_key int8 NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  flags int2 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX container_event_once ON store.container_event (node_id, context_id, seq, day);
CREATE INDEX container_event_received_at ON store.container_event USING brin (received_at);

-- The identity of a container or sandbox, once for each day that mentions it, so that it is dropped with that day.
-- container_id: the id decoded from lower-case hexadecimal, or its UTF-8 bytes. flags: 1 it is UTF-8, 2 is_sandbox.
CREATE TABLE store.container (
  container_key int8 NOT NULL,
  sandbox_key int8,
  node_id int4 NOT NULL,
  day date NOT NULL,
  cluster_id int2 NOT NULL,
  flags int2 NOT NULL,
  attempt int4,
  container_id bytea NOT NULL,
  pod_uid text,
  pod_namespace text,
  pod_name text,
  container_name text
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX container_once ON store.container (node_id, container_key, day);
CREATE INDEX container_pod_name ON store.container (pod_name);

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
CREATE UNIQUE INDEX relist_change_once ON store.relist_change (node_id, context_id, seq, day);
CREATE INDEX relist_change_window_to ON store.relist_change USING brin (window_to);

-- The figures of one minute; durations in microseconds.
--   ended_at, wall_at                the end of the minute: its start and its length, and what the node's wall clock showed
--   lists                            five numbers for each relist, from the minute's start: LIST_FIELDS of the agent
--   kubelet_*                        from the kubelet's own metrics; null where it was not scraped or did not report them
--   kubelet_intervals, _interval_us  the times between two relists that it counted in its mode at the end of the minute; their sum
--   kubelet_counted_from, _to        the scrapes between which its calls were counted
--   kubelet_list_*                   its ListPodSandbox and ListContainers calls that ended: how many, how many failed, how long
--                                    together, and a lower bound of the longest
--   kubelet_relist_us, _status_us    its relists together; its PodSandboxStatus and ContainerStatus calls together
CREATE TABLE store.relist_minute (
  minute timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  context_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  relists int4 NOT NULL,
  errors int4 NOT NULL,
  max_us int8 NOT NULL,
  hist int2[] NOT NULL,
  sandboxes int4 NOT NULL,
  containers int4 NOT NULL,
  bytes int8 NOT NULL,
  expected int4 NOT NULL,
  matched int4 NOT NULL,
  unobservable int4 NOT NULL,
  covered_us int8 NOT NULL,
  span_us int8 NOT NULL,
  ended_at timestamptz NOT NULL,
  kubelet_relists int4,
  kubelet_hist int2[],
  kubelet_last_seen_age_ms int8,
  kubelet_discarded int8,
  kubelet_stream_errors int8,
  kubelet_list_p99_ms float8,
  kubelet_intervals int4,
  kubelet_interval_us int8,
  kubelet_counted_from timestamptz,
  kubelet_counted_to timestamptz,
  kubelet_relist_us int8,
  kubelet_list_calls int4,
  kubelet_list_errors int4,
  kubelet_list_us int8,
  kubelet_longest_list_us int8,
  kubelet_status_us int8,
  wall_at timestamptz NOT NULL,
  lists int4[] NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX relist_minute_once ON store.relist_minute (node_id, context_id, seq, day);
CREATE INDEX relist_minute_minute ON store.relist_minute USING brin (minute);

-- Minutes merged by `plegwatch maintain` before their day is dropped.
CREATE TABLE store.relist_hour (
  hour timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  minutes int4 NOT NULL,
  relists int8 NOT NULL,
  errors int8 NOT NULL,
  max_us int8 NOT NULL,
  hist int4[] NOT NULL,
  sandboxes int4 NOT NULL,
  containers int4 NOT NULL,
  bytes int8 NOT NULL,
  expected int8 NOT NULL,
  matched int8 NOT NULL,
  unobservable int8 NOT NULL,
  covered_us int8 NOT NULL,
  span_us int8 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX relist_hour_once ON store.relist_hour (node_id, hour, day);

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

-- What became known later about a finding. Insert only, so that the order of arrival does not matter.
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

-- The last reported state of a node: the record with the highest (incarnation, seq). It says nothing of the present once a later
-- incarnation has started or the agent is silent.
--   kubelet_error  why the last scrape of the kubelet failed, while that leaves its mode unknown
CREATE TABLE store.node_state (
  node_id int4 PRIMARY KEY REFERENCES store.node,
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
  kubelet_error text
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

-- The report of each node, so that a new leader neither writes all of them again nor forgets which are due.
--   created_at       when the object was created in Kubernetes
--   status_digest    a digest of the status as last written
--   recheck_at       when the report may change without any new record, as when a miss becomes older than 24 hours
--   node_deleted_at  the Node was deleted and the report with it; the history stays
CREATE TABLE store.report (
  node_id int4 PRIMARY KEY REFERENCES store.node,
  cluster_id int2 NOT NULL,
  created_at timestamptz,
  written_at timestamptz,
  status_digest text,
  recheck_at timestamptz,
  node_deleted_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX report_recheck_at ON store.report (cluster_id, recheck_at) WHERE recheck_at IS NOT NULL;

-- The conditions of a node's report, so that a new leader keeps lastTransitionTime.
CREATE TABLE store.report_condition (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  type text NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  message text NOT NULL,
  since timestamptz NOT NULL,
  PRIMARY KEY (node_id, type)
);

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
  sample bool NOT NULL,
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
CREATE INDEX status_lag_watch_due_at ON store.status_lag_watch (cluster_id, sample, due_at);

-- Lags of samples, kept for two days. lag_max_ms is null where the status did not show the transition in time.
CREATE TABLE store.status_lag (
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  at timestamptz NOT NULL,
  event_type text NOT NULL,
  lag_min_ms float8 NOT NULL,
  lag_max_ms float8
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
