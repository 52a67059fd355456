-- The tables of the history, in schema `store`. People read the views of schema `plegwatch`.
--
--   day       the UTC date of a record's time (the epoch's base plus the record's offset): a pure function of the record, so a
--             redelivery meets its first copy in the same partition
--   obj       the first 8 bytes of sha256(container or sandbox id), as a signed integer
--   ctx_id    an epoch and the versions of runtime, kubelet and agent during a part of it
--   witness   the unique index (node_id, ctx_id, seq, day): the second check that a record is stored once
--
-- Kinds of the two tables with one row per event or change are small integers; rare tables keep text.
CREATE SCHEMA IF NOT EXISTS store;
CREATE SCHEMA IF NOT EXISTS plegwatch;

CREATE TABLE store.setting (
  key text PRIMARY KEY,
  value jsonb NOT NULL
);
COMMENT ON TABLE store.setting IS 'lanes; retention_days (events and minutes); keep_days (findings, gaps, modes, hours).';
INSERT INTO store.setting (key, value) VALUES ('lanes', '16'), ('retention_days', '14'), ('keep_days', '400');

CREATE TABLE store.cluster (
  cluster_id int2 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  uid text
);

-- life, ctx_no and ctx_id are those of the latest life that was heard; they only ever move forward.
CREATE TABLE store.node (
  node_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cluster_id int2 NOT NULL REFERENCES store.cluster,
  name text NOT NULL,
  node_uid text,
  first_seen timestamptz NOT NULL DEFAULT now(),
  last_seen timestamptz NOT NULL DEFAULT now(),
  life int4 NOT NULL DEFAULT 0,
  ctx_no int4 NOT NULL DEFAULT 0,
  ctx_id int4,
  UNIQUE (cluster_id, name)
) WITH (fillfactor = 50);

CREATE TABLE store.context (
  ctx_id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node_id int4 NOT NULL REFERENCES store.node,
  epoch uuid NOT NULL,
  ctx_no int4 NOT NULL,
  runtime_name text NOT NULL,
  runtime_version text NOT NULL,
  kubelet_version text NOT NULL,
  agent_version text NOT NULL,
  UNIQUE (node_id, epoch, ctx_no)
);

-- One life of an agent. An epoch belongs to one node for ever: hence the unique index on the epoch alone.
--   last_seq     the highest seq that was announced to exist
--   tail, tail_at  the highest `last` of a batch, and when that batch was cut
--   last_at      the time of the latest record
--   complete_at  up to here everything the agent wrote is stored or declared lost
CREATE TABLE store.epoch (
  node_id int4 NOT NULL REFERENCES store.node,
  cluster_id int2 NOT NULL,
  epoch uuid NOT NULL,
  prev uuid,
  life int4 NOT NULL,
  node_uid text NOT NULL,
  boot_id text NOT NULL,
  base_at timestamptz NOT NULL,
  round int4 NOT NULL,
  floor int4 NOT NULL,
  last_seq int4 NOT NULL,
  received int4multirange NOT NULL DEFAULT '{}',
  lost int4multirange NOT NULL DEFAULT '{}',
  tail int4 NOT NULL DEFAULT 0,
  tail_at timestamptz,
  last_at timestamptz,
  complete_at timestamptz,
  seen_at timestamptz NOT NULL,
  closed_at timestamptz,
  close_cause text,
  PRIMARY KEY (node_id, epoch),
  UNIQUE (epoch)
) WITH (fillfactor = 50);
CREATE INDEX epoch_open ON store.epoch (node_id, life) WHERE closed_at IS NULL;

-- bits: the CRI's event type in the low byte, 256 replayed, 512 has_sandbox_status, 1024 is_sandbox.
CREATE TABLE store.event (
  at timestamptz NOT NULL,
  created_ns int8 NOT NULL,
  obj int8 NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  ctx_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  bits int2 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX event_witness ON store.event (node_id, ctx_id, seq, day);
CREATE INDEX event_at ON store.event USING brin (at);

-- The identity of an id, once for each day that mentions it, so that it leaves with the day that used it.
-- cid: the id decoded from lower-case hexadecimal, or its UTF-8 bytes. bits: 1 cid is UTF-8 text, 2 is_sandbox.
CREATE TABLE store.object (
  obj int8 NOT NULL,
  sandbox int8,
  node_id int4 NOT NULL,
  day date NOT NULL,
  cluster_id int2 NOT NULL,
  bits int2 NOT NULL,
  attempt int4,
  cid bytea NOT NULL,
  pod_uid text,
  namespace text,
  pod_name text,
  container_name text
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX object_once ON store.object (node_id, obj, day);
CREATE INDEX object_cid ON store.object USING hash (cid);
CREATE INDEX object_pod ON store.object (pod_name);

-- old_new: the old state in bits 0-3, the new one in bits 4-7, 256 is_sandbox.
-- pleg: a bit for each event a kubelet's Generic PLEG makes: 1 started, 2 died, 4 removed, 8 changed.
CREATE TABLE store.change (
  from_at timestamptz NOT NULL,
  to_at timestamptz NOT NULL,
  obj int8 NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  ctx_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  old_new int2 NOT NULL,
  pleg int2 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX change_witness ON store.change (node_id, ctx_id, seq, day);
CREATE INDEX change_at ON store.change USING brin (to_at);

-- One minute of figures; lengths in microseconds. Columns k_ come from the kubelet's own metrics, null where it was not asked or did
-- not tell. k_intervals are the times between two relists that it counted in the mode in which the minute ended, k_interval_us their sum.
CREATE TABLE store.sample (
  minute timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  ctx_id int4 NOT NULL,
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
  k_relists int4,
  k_hist int2[],
  k_last_seen_age_ms int8,
  k_discarded int8,
  k_stream_errors int8,
  k_list_p99_ms float8,
  k_intervals int4,
  k_interval_us int8
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX sample_witness ON store.sample (node_id, ctx_id, seq, day);
CREATE INDEX sample_minute ON store.sample USING brin (minute);

-- Minutes merged by `plegwatch maintain` before their day is dropped.
CREATE TABLE store.sample_hour (
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
CREATE UNIQUE INDEX sample_hour_once ON store.sample_hour (node_id, hour, day);

-- A verdict, immutable. The identity is copied as text: it outlives the object's partition.
CREATE TABLE store.finding (
  finding_id uuid NOT NULL,
  detected_at timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  ctx_id int4 NOT NULL,
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
CREATE UNIQUE INDEX finding_witness ON store.finding (node_id, ctx_id, seq, day);
CREATE INDEX finding_id ON store.finding (finding_id);
CREATE INDEX finding_at ON store.finding (node_id, detected_at);

-- What was learnt later about a finding: `resolved`, `lag_min`, `lag_max`. Insert only, so order is free.
CREATE TABLE store.finding_update (
  finding_id uuid NOT NULL,
  node_id int4 NOT NULL,
  cluster_id int2 NOT NULL,
  day date NOT NULL,
  what text NOT NULL,
  at timestamptz NOT NULL,
  value_ms float8
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX finding_update_once ON store.finding_update (node_id, finding_id, what, day);

-- A subscription; day is that of opened_at. Every record of a session repeats what is known, so order is free.
CREATE TABLE store.session (
  node_id int4 NOT NULL,
  epoch uuid NOT NULL,
  session_no int4 NOT NULL,
  day date NOT NULL,
  cluster_id int2 NOT NULL,
  ctx_id int4 NOT NULL,
  seq int4 NOT NULL,
  opened_at timestamptz NOT NULL,
  armed_at timestamptz,
  closed_at timestamptz,
  code text,
  message text,
  events int8 NOT NULL,
  replayed int8 NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX session_once ON store.session (node_id, epoch, session_no, day);
CREATE INDEX session_opened ON store.session (node_id, opened_at);

CREATE TABLE store.mode_change (
  at timestamptz NOT NULL,
  not_before timestamptz NOT NULL,
  day date NOT NULL,
  node_id int4 NOT NULL,
  ctx_id int4 NOT NULL,
  seq int4 NOT NULL,
  cluster_id int2 NOT NULL,
  model text NOT NULL,
  from_mode text NOT NULL,
  to_mode text NOT NULL,
  reason text NOT NULL,
  proof jsonb NOT NULL
) PARTITION BY RANGE (day);
CREATE UNIQUE INDEX mode_change_witness ON store.mode_change (node_id, ctx_id, seq, day);
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

-- from_at and to_at bound the gap; to_at null is open. `bytes` is what arrived in place of a record that cannot be stored.
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
  bytes bytea,
  PRIMARY KEY (node_id, gap_id)
);
CREATE INDEX gap_from ON store.gap (node_id, from_at);
CREATE INDEX gap_seq ON store.gap (node_id, epoch, from_seq) WHERE scope = 'seq' AND filled_at IS NULL;

-- The present state of a node: the record with the highest (life, seq). k_stream_errors: of the kubelet's own stream.
CREATE TABLE store.node_state (
  node_id int4 PRIMARY KEY REFERENCES store.node,
  cluster_id int2 NOT NULL,
  life int4 NOT NULL,
  seq int4 NOT NULL,
  ctx_id int4 NOT NULL,
  at timestamptz NOT NULL,
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
  k_stream_errors int8
) WITH (fillfactor = 50);

-- Nodes whose report must be written. A writer deletes the row only where the version is the one it read.
CREATE TABLE store.report_queue (
  node_id int4 PRIMARY KEY REFERENCES store.node,
  cluster_id int2 NOT NULL,
  version int8 NOT NULL DEFAULT 1,
  due_at timestamptz NOT NULL,
  urgent bool NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX report_queue_due ON store.report_queue (cluster_id, due_at);

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

-- The highest term that led a cluster: a leader of an older term must not write.
CREATE TABLE store.leader (
  cluster_id int2 PRIMARY KEY REFERENCES store.cluster,
  term int8 NOT NULL,
  holder text NOT NULL,
  since timestamptz NOT NULL
);

-- Which database role may see or write which cluster.
CREATE TABLE store.access (
  role name NOT NULL,
  cluster_id int2 NOT NULL REFERENCES store.cluster,
  can_write bool NOT NULL DEFAULT false,
  PRIMARY KEY (role, cluster_id)
);

-- Input that belongs to nobody. The node in it is only claimed.
CREATE TABLE store.rejected (
  cluster_id int2 NOT NULL REFERENCES store.cluster,
  hash bytea NOT NULL,
  at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  lane int4 NOT NULL,
  reason text NOT NULL,
  problem text NOT NULL,
  claimed_node text NOT NULL,
  size int4 NOT NULL,
  head bytea NOT NULL,
  times int8 NOT NULL DEFAULT 1,
  PRIMARY KEY (cluster_id, hash)
);
