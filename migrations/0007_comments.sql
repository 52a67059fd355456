-- The meaning of views, functions and their columns, as `\d+` in psql shows it. docs/reference/views.md is generated from this file.
--
-- Each fact is here once: a column without a comment of its own gets, at the end of this file, the one of its minutes, or of its name.

COMMENT ON VIEW plegwatch.nodes IS 'One row per Node of the cluster, as its agent reports it now. Without an API server, and of deleted Nodes, only those that ever had an agent.';
COMMENT ON COLUMN plegwatch.nodes.first_seen IS 'when its first record was stored; null if no agent ever reported';
COMMENT ON COLUMN plegwatch.nodes.mode_since IS 'start of this mode; of Unknown, when it was last known';
COMMENT ON COLUMN plegwatch.nodes.stream_since IS 'start of this stream state';
COMMENT ON COLUMN plegwatch.nodes.stream_reason IS 'reason for the stream state';
COMMENT ON COLUMN plegwatch.nodes.stream_error IS 'last error of the stream';
COMMENT ON COLUMN plegwatch.nodes.relist_healthy IS 'whether lists are answered in time';
COMMENT ON COLUMN plegwatch.nodes.relist_reason IS 'reason for unhealthy relists';
COMMENT ON COLUMN plegwatch.nodes.mode_reason IS 'reason for the mode; NeverSeen, AgentSilent (for three minutes) or NotReportedYet if no agent reports';
COMMENT ON COLUMN plegwatch.nodes.kubelet_stream_errors IS 'errors of the kubelet''s own event stream since the kubelet started';
COMMENT ON COLUMN plegwatch.nodes.kubelet_error IS 'error of the last scrape, while it leaves the mode unknown';
COMMENT ON COLUMN plegwatch.nodes.kubelet_identity IS 'whether the scraped kubelet is the node''s: Verified, Unverified or NotChecked';
COMMENT ON COLUMN plegwatch.nodes.pods_api_state IS 'watch of the kubelet''s own pod status: Watching, Syncing, Absent (not offered) or Broken; null: off, or no agent reports';
COMMENT ON COLUMN plegwatch.nodes.pods_api_reason IS 'why that watch does not work';
COMMENT ON COLUMN plegwatch.nodes.deleted_at IS 'when the Node was deleted';

COMMENT ON VIEW plegwatch.epochs IS 'One row per run of an agent.';
COMMENT ON COLUMN plegwatch.epochs.prev IS 'previous run on the node';
COMMENT ON COLUMN plegwatch.epochs.incarnation IS 'order of the node''s runs';
COMMENT ON COLUMN plegwatch.epochs.boot_id IS 'boot of the node';
COMMENT ON COLUMN plegwatch.epochs.started_at IS 'start of the run';
COMMENT ON COLUMN plegwatch.epochs.ended_at IS 'its end; null while it runs';
COMMENT ON COLUMN plegwatch.epochs.end_cause IS 'why it ended';
COMMENT ON COLUMN plegwatch.epochs.acked_seq IS 'every record up to this seq is stored or declared lost';
COMMENT ON COLUMN plegwatch.epochs.complete_through IS 'every record written until then is stored or declared lost';
COMMENT ON COLUMN plegwatch.epochs.last_seq IS 'last record known to exist';
COMMENT ON COLUMN plegwatch.epochs.records_stored IS 'number of stored records';
COMMENT ON COLUMN plegwatch.epochs.records_lost IS 'number of records declared lost';
COMMENT ON COLUMN plegwatch.epochs.decided_through IS 'records say whether the event of every transition before then came';
COMMENT ON COLUMN plegwatch.epochs.clock_ahead_ms IS 'how far the node''s clock is ahead of the database''s; negative: behind';
COMMENT ON COLUMN plegwatch.epochs.clock_moved_ms IS 'how far the node''s clock was moved during the run';
COMMENT ON COLUMN plegwatch.epochs.attributed IS 'whether the node signed every batch';

COMMENT ON VIEW plegwatch.container_events IS 'One row per event that an agent received.';
COMMENT ON COLUMN plegwatch.container_events.received_at IS 'when the agent received it';
COMMENT ON COLUMN plegwatch.container_events.created_at IS 'when the runtime built it';
COMMENT ON COLUMN plegwatch.container_events.created_ns IS 'the same, in nanoseconds since 1970';
COMMENT ON COLUMN plegwatch.container_events.attempt IS 'earlier starts of the container in its pod';
COMMENT ON COLUMN plegwatch.container_events.replayed IS 'whether it is older than the subscription';
COMMENT ON COLUMN plegwatch.container_events.has_sandbox_status IS 'whether it carries the sandbox''s status';
COMMENT ON COLUMN plegwatch.container_events.exit_code IS 'exit code of the container; null if the event or the runtime does not say';
COMMENT ON COLUMN plegwatch.container_events.exit_reason IS 'the runtime''s reason: Completed, Error, OOMKilled, seccomp killed, StartError, ContainerCannotRun, Unknown or Other; null if the event does not say';

COMMENT ON VIEW plegwatch.relist_changes IS 'One row per state transition that a relist found.';
COMMENT ON COLUMN plegwatch.relist_changes.window_from IS 'start of the last list with the old state';
COMMENT ON COLUMN plegwatch.relist_changes.window_to IS 'end of the list with the new state';
COMMENT ON COLUMN plegwatch.relist_changes.old_state IS 'state before, in the kubelet''s words: non-existent, unknown, running or exited';
COMMENT ON COLUMN plegwatch.relist_changes.new_state IS 'state after';
COMMENT ON COLUMN plegwatch.relist_changes.pleg_events IS 'events that a Generic PLEG makes of it';

COMMENT ON VIEW plegwatch.findings IS 'One row per conclusion of the comparison of events with lists.';
COMMENT ON COLUMN plegwatch.findings.kind IS 'missed, late, out_of_order, stale, duplicate, spurious, unannounced, short_life, duplicate_container, regression, silent_stream, kubelet_late or unobservable';
COMMENT ON COLUMN plegwatch.findings.event_type IS 'CREATED, STARTED, STOPPED or DELETED; null if it is about no event';
COMMENT ON COLUMN plegwatch.findings.container_name IS 'name of the container; null for a sandbox, or if not known';
COMMENT ON COLUMN plegwatch.findings.is_sandbox IS 'whether it is a sandbox; null if not known';
COMMENT ON COLUMN plegwatch.findings.window_from IS 'it happened after this time';
COMMENT ON COLUMN plegwatch.findings.window_to IS 'it had happened by this time';
COMMENT ON COLUMN plegwatch.findings.occurred_at IS 'when it happened; null if the runtime does not know';
COMMENT ON COLUMN plegwatch.findings.resolved_at IS 'when a missed event came after all, a starved stream recovered, or kubelet_late ended: the change was shown, the pod ended or its container was replaced';
COMMENT ON COLUMN plegwatch.findings.lateness_ms IS 'time from the transition to its event';
COMMENT ON COLUMN plegwatch.findings.delivery_ms IS 'time from building the event to its arrival';
COMMENT ON COLUMN plegwatch.findings.mode_reason IS 'reason for the mode then; null if not known';
COMMENT ON COLUMN plegwatch.findings.lag_anomalous IS 'whether the status lag is unusual for the node; null with too few to compare';
COMMENT ON COLUMN plegwatch.findings.proof IS 'evidence as the agent wrote it; the hint stream_starved: the stream was starved then';
COMMENT ON COLUMN plegwatch.findings.kubelet_knew IS 'kubelet''s own status, for missed and kubelet_late: shown, not_shown or not_observed; null: not recorded';
COMMENT ON COLUMN plegwatch.findings.kubelet_why IS 'why that was not observed';
COMMENT ON COLUMN plegwatch.findings.kubelet_at_least_ms IS 'the kubelet''s own status did not show the change for at least this long';
COMMENT ON COLUMN plegwatch.findings.kubelet_at_most_ms IS 'and for at most this long; null if it was not seen to show it';
COMMENT ON COLUMN plegwatch.findings.publishing_min_ms IS 'from the kubelet''s own status to the API server it took at least this long';
COMMENT ON COLUMN plegwatch.findings.publishing_max_ms IS 'and at most this long';

COMMENT ON VIEW plegwatch.stream_sessions IS 'One row per subscription to a runtime''s events.';
COMMENT ON COLUMN plegwatch.stream_sessions.session_no IS 'its number in the epoch';
COMMENT ON COLUMN plegwatch.stream_sessions.opened_at IS 'when the agent subscribed';
COMMENT ON COLUMN plegwatch.stream_sessions.armed_at IS 'when its first event came; null if none did';
COMMENT ON COLUMN plegwatch.stream_sessions.closed_at IS 'when it ended; null while it lasts';
COMMENT ON COLUMN plegwatch.stream_sessions.code IS 'gRPC code of its end';
COMMENT ON COLUMN plegwatch.stream_sessions.message IS 'message of its end';
COMMENT ON COLUMN plegwatch.stream_sessions.events IS 'number of events received';
COMMENT ON COLUMN plegwatch.stream_sessions.replayed IS 'events older than the subscription';

COMMENT ON VIEW plegwatch.mode_changes IS 'One row per change of a kubelet''s mode, as scrapes saw it.';
COMMENT ON COLUMN plegwatch.mode_changes.at IS 'first scrape with the new mode';
COMMENT ON COLUMN plegwatch.mode_changes.from_mode IS 'mode before';
COMMENT ON COLUMN plegwatch.mode_changes.to_mode IS 'mode after';
COMMENT ON COLUMN plegwatch.mode_changes.reason IS 'why it changed: docs/explanation/modes.md';
COMMENT ON COLUMN plegwatch.mode_changes.proof IS 'evidence as the agent wrote it';
COMMENT ON COLUMN plegwatch.mode_changes.seq IS 'position of the record in its epoch; null if an agent ended or became silent';

COMMENT ON VIEW plegwatch.gaps IS 'One row per period without evidence, and per range of missing records.';
COMMENT ON COLUMN plegwatch.gaps.scope IS 'what was not observed: stream, list, spool, seq, agent, findings, kubelet or kubelet_status (docs/explanation/gaps.md)';
COMMENT ON COLUMN plegwatch.gaps.cause IS 'why it was not observed';
COMMENT ON COLUMN plegwatch.gaps.from_seq IS 'first missing record';
COMMENT ON COLUMN plegwatch.gaps.to_seq IS 'last missing record';
COMMENT ON COLUMN plegwatch.gaps.records IS 'number of missing records';
COMMENT ON COLUMN plegwatch.gaps.filled_at IS 'when they arrived after all';
COMMENT ON COLUMN plegwatch.gaps.gap_id IS 'id of the gap';
COMMENT ON COLUMN plegwatch.gaps.record_bytes IS 'bytes that arrived in place of a record and cannot be stored';

COMMENT ON VIEW plegwatch.relist_minutes IS 'The agent''s relists: one row per minute, or for up to ten minutes in which nothing happened. It covers from_at to to_at.';
COMMENT ON COLUMN plegwatch.relist_minutes.relists IS 'number of successful relists';
COMMENT ON COLUMN plegwatch.relist_minutes.errors IS 'number of failed relists';
COMMENT ON COLUMN plegwatch.relist_minutes.p50_ms IS 'median duration of successful relists; null without one, as the next three';
COMMENT ON COLUMN plegwatch.relist_minutes.p90_ms IS '90th percentile';
COMMENT ON COLUMN plegwatch.relist_minutes.p99_ms IS '99th percentile';
COMMENT ON COLUMN plegwatch.relist_minutes.max_ms IS 'longest duration';
COMMENT ON COLUMN plegwatch.relist_minutes.hist IS 'relists per bucket of duration, without empty ones at the end; store.hist_sum adds, store.hist_quantile reads them';
COMMENT ON COLUMN plegwatch.relist_minutes.sandboxes IS 'most sandboxes in the last list of a minute';
COMMENT ON COLUMN plegwatch.relist_minutes.containers IS 'most containers in it';
COMMENT ON COLUMN plegwatch.relist_minutes.exited_sandboxes IS 'most sandboxes in it that were not ready';
COMMENT ON COLUMN plegwatch.relist_minutes.exited_containers IS 'most containers in it that had exited';
COMMENT ON COLUMN plegwatch.relist_minutes.sandbox_list_bytes IS 'largest size of its answer with sandboxes; a kubelet without CRIListStreaming accepts 16 MiB';
COMMENT ON COLUMN plegwatch.relist_minutes.container_list_bytes IS 'the same for containers';
COMMENT ON COLUMN plegwatch.relist_minutes.expected IS 'transitions whose event was due';
COMMENT ON COLUMN plegwatch.relist_minutes.matched IS 'transitions whose event came';
COMMENT ON COLUMN plegwatch.relist_minutes.unobservable IS 'transitions of which it cannot be known whether their event came';
COMMENT ON COLUMN plegwatch.relist_minutes.covered_ms IS 'time in which the stream was watched';
COMMENT ON COLUMN plegwatch.relist_minutes.span_ms IS 'time that the row covers';

COMMENT ON VIEW plegwatch.relists IS 'One row per relist of the agent; from more than two minutes in which nothing happened only the first and the last two.';
COMMENT ON COLUMN plegwatch.relists.sandboxes_from IS 'start of the call for sandboxes';
COMMENT ON COLUMN plegwatch.relists.sandboxes_to IS 'when it was answered';
COMMENT ON COLUMN plegwatch.relists.containers_from IS 'start of the call for containers';
COMMENT ON COLUMN plegwatch.relists.containers_to IS 'when it was answered';
COMMENT ON COLUMN plegwatch.relists.sandboxes_whole IS 'whether the answer with sandboxes was complete';
COMMENT ON COLUMN plegwatch.relists.containers_whole IS 'whether the answer with containers was complete';
COMMENT ON COLUMN plegwatch.relists.failed IS 'whether the relist failed: both calls then have its start and end';

COMMENT ON VIEW plegwatch.relist_hours IS 'relist_minutes by the hour, kept longer. Another run, version or setting begins another row.';
COMMENT ON COLUMN plegwatch.relist_hours.minutes IS 'minutes with evidence; one that two rows share counts in both';

COMMENT ON VIEW plegwatch.kubelet_minutes IS 'The kubelet''s own figures: one row per minute with a scrape, or for up to ten minutes in which nothing happened. It covers counted_from to counted_to.';
COMMENT ON COLUMN plegwatch.kubelet_minutes.counted_from IS 'scrape from which the row counts; null at an agent''s first';
COMMENT ON COLUMN plegwatch.kubelet_minutes.counted_to IS 'scrape up to which it counts: select by this time, not by minute';
COMMENT ON COLUMN plegwatch.kubelet_minutes.relists IS 'number of relists that ended';
COMMENT ON COLUMN plegwatch.kubelet_minutes.relist_p99_ms IS '99th percentile of their durations';
COMMENT ON COLUMN plegwatch.kubelet_minutes.relist_period_ms IS 'mean time between two relists';
COMMENT ON COLUMN plegwatch.kubelet_minutes.relist_ms IS 'total time of relists';
COMMENT ON COLUMN plegwatch.kubelet_minutes.hist IS 'relists per bucket, without empty ones at the end; bounds: store.kubelet_hist_bounds()';
COMMENT ON COLUMN plegwatch.kubelet_minutes.last_seen_age_ms IS 'longest time since PLEG was last active; null before the first relist, and before 1.37 with the gate on';
COMMENT ON COLUMN plegwatch.kubelet_minutes.discarded IS 'events discarded because the channel was full';
COMMENT ON COLUMN plegwatch.kubelet_minutes.stream_errors IS 'errors of its event stream since it started';
COMMENT ON COLUMN plegwatch.kubelet_minutes.list_p99_ms IS '99th percentile of its list calls, in the slowest minute';
COMMENT ON COLUMN plegwatch.kubelet_minutes.longest_list_ms IS 'lower bound of its longest list call';
COMMENT ON COLUMN plegwatch.kubelet_minutes.sandbox_lists IS 'ListPodSandbox calls that ended';
COMMENT ON COLUMN plegwatch.kubelet_minutes.sandbox_list_errors IS 'how many of them failed';
COMMENT ON COLUMN plegwatch.kubelet_minutes.sandbox_list_ms IS 'their total time';
COMMENT ON COLUMN plegwatch.kubelet_minutes.container_lists IS 'ListContainers calls that ended';
COMMENT ON COLUMN plegwatch.kubelet_minutes.container_list_errors IS 'how many of them failed';
COMMENT ON COLUMN plegwatch.kubelet_minutes.container_list_ms IS 'their total time';
COMMENT ON COLUMN plegwatch.kubelet_minutes.sandbox_statuses IS 'PodSandboxStatus calls that ended';
COMMENT ON COLUMN plegwatch.kubelet_minutes.sandbox_status_errors IS 'how many of them failed';
COMMENT ON COLUMN plegwatch.kubelet_minutes.sandbox_status_ms IS 'their total time';
COMMENT ON COLUMN plegwatch.kubelet_minutes.container_statuses IS 'ContainerStatus calls that ended';
COMMENT ON COLUMN plegwatch.kubelet_minutes.container_status_errors IS 'how many of them failed';
COMMENT ON COLUMN plegwatch.kubelet_minutes.container_status_ms IS 'their total time';
COMMENT ON COLUMN plegwatch.kubelet_minutes.cpu_share IS 'processor time as a share of one core; null if not reported';
COMMENT ON COLUMN plegwatch.kubelet_minutes.resident_bytes IS 'most resident memory';

COMMENT ON VIEW plegwatch.kubelet_hours IS 'kubelet_minutes by the hour, kept longer. Another run, version or setting begins another row.';
COMMENT ON COLUMN plegwatch.kubelet_hours.counted_ms IS 'time in which its calls were counted';

COMMENT ON VIEW plegwatch.status_checks IS 'One row per minute in which relists were slow and the agent queried statuses: does one pod hang?';
COMMENT ON COLUMN plegwatch.status_checks.asked IS 'statuses queried, one at a time; an unanswered one counts in each minute';
COMMENT ON COLUMN plegwatch.status_checks.slow IS 'statuses that took a second or longer';
COMMENT ON COLUMN plegwatch.status_checks.at IS 'when the slowest, or the one a list waits for, was queried, perhaps in an earlier minute; null, as the columns up to timed_out, if none was slow';
COMMENT ON COLUMN plegwatch.status_checks.status_ms IS 'duration of that status, or of the wait for it';
COMMENT ON COLUMN plegwatch.status_checks.timed_out IS 'whether it was unanswered for five seconds';
COMMENT ON COLUMN plegwatch.status_checks.longest_relist_ms IS 'longest relist answered in that minute; null without one; if as long as status_ms, the runtime is slow, not one pod';
COMMENT ON COLUMN plegwatch.status_checks.verdict IS 'verdict of list_hangs, as far as this minute knows';

COMMENT ON VIEW plegwatch.list_hangs IS 'One row per list of the agent that was not answered within five seconds, with what held it up. Pod and container are null unless they are the verdict.';
COMMENT ON COLUMN plegwatch.list_hangs.from_at IS 'start of the call';
COMMENT ON COLUMN plegwatch.list_hangs.to_at IS 'when it was answered or failed, or the agent ended; null while it hangs';
COMMENT ON COLUMN plegwatch.list_hangs.waited_ms IS 'how long the agent waited, by the last stored minute';
COMMENT ON COLUMN plegwatch.list_hangs.verdict IS 'container or pod: only its status does not answer; runtime: no status does; none: every status does; unknown: too few were queried';
COMMENT ON COLUMN plegwatch.list_hangs.listed IS 'containers and sandboxes listed before';
COMMENT ON COLUMN plegwatch.list_hangs.asked IS 'statuses queried meanwhile';
COMMENT ON COLUMN plegwatch.list_hangs.quick IS 'those answered within a second';
COMMENT ON COLUMN plegwatch.list_hangs.unanswered IS 'those not answered while the list hung';
COMMENT ON COLUMN plegwatch.list_hangs.seq IS 'last record about it';

COMMENT ON VIEW plegwatch.kubelet_lag_minutes IS 'Kubelet lag, from a container''s start or stop until the kubelet''s own status shows it: one row per node, minute and event_type. Kubelets before 1.37 do not offer that status.';
COMMENT ON COLUMN plegwatch.kubelet_lag_minutes.event_type IS 'STARTED or STOPPED';
COMMENT ON COLUMN plegwatch.kubelet_lag_minutes.transitions IS 'starts or stops that the status was seen to show, of those with a known exact time';
COMMENT ON COLUMN plegwatch.kubelet_lag_minutes.p50_ms IS 'upper bound of the median; null beyond 65,536 ms';
COMMENT ON COLUMN plegwatch.kubelet_lag_minutes.p99_ms IS 'upper bound of the 99th percentile; null beyond 65,536 ms';
COMMENT ON COLUMN plegwatch.kubelet_lag_minutes.hist IS 'transitions per bucket, without empty ones at the end; bounds: store.kubelet_lag_bounds()';

COMMENT ON VIEW plegwatch.kubelet_lag_hours IS 'kubelet_lag_minutes by the hour, kept longer. Another run, version or setting begins another row.';

COMMENT ON VIEW plegwatch.node_conditions IS 'One row per PLEG-related change of a Node''s Ready condition.';
COMMENT ON COLUMN plegwatch.node_conditions.at IS 'when the condition changed';
COMMENT ON COLUMN plegwatch.node_conditions.status IS 'its new status';
COMMENT ON COLUMN plegwatch.node_conditions.reason IS 'its reason';

COMMENT ON VIEW plegwatch.not_ready_intervals IS 'One row per period in which a Node was not Ready for one set of causes, PLEG among them.';
COMMENT ON COLUMN plegwatch.not_ready_intervals.minutes IS 'its length, until now while it lasts';
COMMENT ON COLUMN plegwatch.not_ready_intervals.status IS 'False: the kubelet said so; Unknown: it did not report';
COMMENT ON COLUMN plegwatch.not_ready_intervals.reason IS 'reason of the condition';
COMMENT ON COLUMN plegwatch.not_ready_intervals.causes IS 'causes in its message: pleg, runtime, network, storage, capacity, shutdown, kubelet_silent, or other';

COMMENT ON VIEW plegwatch.node_info IS 'One row per period with the same operating system, kernel and stored labels of a Node. A change is noticed within a minute.';

COMMENT ON VIEW plegwatch.status_lags IS 'One row per announced start or stop whose status lag was measured.';
COMMENT ON COLUMN plegwatch.status_lags.at IS 'when its pod was last read';
COMMENT ON COLUMN plegwatch.status_lags.kind IS 'sample (kept two days), or fallback: each one after a kubelet of 1.31 or older fell back (kept as long as events)';
COMMENT ON COLUMN plegwatch.status_lags.happened_at IS 'latest time at which it can have happened; null, as reason, pod and container, for a sample';

COMMENT ON VIEW plegwatch.rejected IS 'One row per distinct input that a controller refused.';
COMMENT ON COLUMN plegwatch.rejected.node IS 'always null: the input cannot be attributed';
COMMENT ON COLUMN plegwatch.rejected.at IS 'when it first came';
COMMENT ON COLUMN plegwatch.rejected.queue IS 'queue that it came through';
COMMENT ON COLUMN plegwatch.rejected.reason IS 'why it was refused: docs/reference/views.md';
COMMENT ON COLUMN plegwatch.rejected.claimed_node IS 'node that it names';
COMMENT ON COLUMN plegwatch.rejected.bytes IS 'its size';
COMMENT ON COLUMN plegwatch.rejected.times IS 'how often it came';
COMMENT ON COLUMN plegwatch.rejected.last_at IS 'when it last came';
COMMENT ON COLUMN plegwatch.rejected.error IS 'error in detail';
COMMENT ON COLUMN plegwatch.rejected.head IS 'its first bytes';

COMMENT ON VIEW plegwatch.short_lives IS 'One row per container, run or end between two lists, with the chance that a Generic PLEG overlooks it.';
COMMENT ON COLUMN plegwatch.short_lives.life_min_ms IS 'lower bound of its duration';
COMMENT ON COLUMN plegwatch.short_lives.life_max_ms IS 'upper bound of its duration';
COMMENT ON COLUMN plegwatch.short_lives.list_before IS 'last list before, which did not show it';
COMMENT ON COLUMN plegwatch.short_lives.list_after IS 'first list after, which did not show it';
COMMENT ON COLUMN plegwatch.short_lives.relist_period_ms IS 'kubelet''s mean relist period, in the latest of the 15 minutes before that has it';
COMMENT ON COLUMN plegwatch.short_lives.chance_min IS 'chance, 0 to 1, that relists of that period miss it if it lasted life_max_ms';
COMMENT ON COLUMN plegwatch.short_lives.chance_max IS 'the same for life_min_ms';

COMMENT ON VIEW plegwatch.finding_evidence IS 'One row per time and record that a finding rests on.';
COMMENT ON COLUMN plegwatch.finding_evidence.kind IS 'kind of the finding';
COMMENT ON COLUMN plegwatch.finding_evidence.line IS 'reading order';
COMMENT ON COLUMN plegwatch.finding_evidence.at IS 'time, or start of the period';
COMMENT ON COLUMN plegwatch.finding_evidence.until IS 'end of the period';
COMMENT ON COLUMN plegwatch.finding_evidence.fact IS 'observation';
COMMENT ON COLUMN plegwatch.finding_evidence.record IS 'view and row that store it; null if only the proof does';

COMMENT ON VIEW plegwatch.pleg_verdicts IS 'One row per period in which PLEG was unhealthy or relists were slow, and why. Pod and container are null unless they are the verdict.';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kind IS 'unhealthy: a Node reported that PLEG is not healthy; slow: a minute with a relist of over ten seconds, or with a scrape that long after PLEG was last active';
COMMENT ON COLUMN plegwatch.pleg_verdicts.from_at IS 'start of the period; unhealthy: when PLEG was last active';
COMMENT ON COLUMN plegwatch.pleg_verdicts.at IS 'when the condition changed, or the scrape ended';
COMMENT ON COLUMN plegwatch.pleg_verdicts.verdict IS 'smallest proven cause: container, pod, runtime, kubelet or node; otherwise unknown';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_lists IS 'kubelet''s lists: slow, failing, not_slow or unknown';
COMMENT ON COLUMN plegwatch.pleg_verdicts.our_lists IS 'agent''s lists: slow, fast or unknown';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_list_calls IS 'kubelet''s list calls that ended';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_list_errors IS 'how many of them failed';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_list_ms IS 'their total time';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_longest_list_ms IS 'lower bound of the longest';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_relist_ms IS 'total time of the kubelet''s relists';
COMMENT ON COLUMN plegwatch.pleg_verdicts.kubelet_status_ms IS 'total time of its status calls';
COMMENT ON COLUMN plegwatch.pleg_verdicts.our_relists IS 'agent''s relists';
COMMENT ON COLUMN plegwatch.pleg_verdicts.our_errors IS 'how many of them failed';
COMMENT ON COLUMN plegwatch.pleg_verdicts.our_longest_relist_ms IS 'the longest of them';
COMMENT ON COLUMN plegwatch.pleg_verdicts.our_period_ms IS 'longest mean time between two of them';
COMMENT ON COLUMN plegwatch.pleg_verdicts.our_waiting_ms IS 'how long the agent waited for lists';
COMMENT ON COLUMN plegwatch.pleg_verdicts.statuses_asked IS 'statuses queried while the agent''s list hung; null if none hung long enough';
COMMENT ON COLUMN plegwatch.pleg_verdicts.statuses_quick IS 'those answered within a second';
COMMENT ON COLUMN plegwatch.pleg_verdicts.statuses_unanswered IS 'those not answered';

COMMENT ON VIEW plegwatch.fallback_intervals IS 'One row per period in which a kubelet had given up its event stream.';
COMMENT ON COLUMN plegwatch.fallback_intervals.from_at IS 'first scrape with the fallback';
COMMENT ON COLUMN plegwatch.fallback_intervals.hours IS 'its length, until now while it lasts';
COMMENT ON COLUMN plegwatch.fallback_intervals.mode IS 'Fallback or HintDisabled';
COMMENT ON COLUMN plegwatch.fallback_intervals.reason IS 'why it fell back: docs/explanation/modes.md';
COMMENT ON COLUMN plegwatch.fallback_intervals.next_mode IS 'mode after; Unknown if nobody observed the kubelet any more';
COMMENT ON COLUMN plegwatch.fallback_intervals.our_stream_ended_with IS 'code of the agent''s own stream, if it ended at the same time: the runtime closed every stream';
COMMENT ON COLUMN plegwatch.fallback_intervals.message IS 'message of that end';
COMMENT ON COLUMN plegwatch.fallback_intervals.findings IS 'number of findings missed and kubelet_late on the node meanwhile';

COMMENT ON VIEW plegwatch.readiness IS 'One row per Node that exists: would Evented PLEG be safe on it, by the last seven days?';
COMMENT ON COLUMN plegwatch.readiness.verdict IS 'unsafe: a fallback, low_per_million over 100, or a kubelet of 1.26 to 1.31; safe: high_per_million at most 1000 and coverage at least 0.9; otherwise unknown';
COMMENT ON COLUMN plegwatch.readiness.reason IS 'evidence for the verdict, or what is missing';
COMMENT ON COLUMN plegwatch.readiness.observed_hours IS 'hours observed';
COMMENT ON COLUMN plegwatch.readiness.coverage IS 'share of this time, 0 to 1, in which the stream was watched';
COMMENT ON COLUMN plegwatch.readiness.fallbacks IS 'number of fallbacks of the kubelet';
COMMENT ON COLUMN plegwatch.readiness.blind_spots IS 'transitions that this runtime never announces; null if none was found';

COMMENT ON FUNCTION plegwatch.undeclared_gaps(timestamptz, timestamptz) IS
  'Periods that neither evidence nor a gap covers, each a defect of plegwatch.';
COMMENT ON COLUMN plegwatch.undeclared_gap.scope IS 'what is not covered: stream, list or kubelet';

COMMENT ON FUNCTION plegwatch.miss_rate(timestamptz, timestamptz, text) IS
  'How many events are missed, by versions of runtime and kubelet, and by by_label (the key of a stored label, os_image or kernel_version).';
COMMENT ON COLUMN plegwatch.miss_rate_of_versions.nodes IS 'nodes with these versions in the period';

COMMENT ON FUNCTION plegwatch.evidence_completeness(date, date, text) IS
  'How complete the evidence is, by cluster, day and by_label, as in miss_rate.';
COMMENT ON COLUMN plegwatch.completeness_of_day.day IS 'UTC day';
COMMENT ON COLUMN plegwatch.completeness_of_day.nodes IS 'nodes that existed and whose agent had reported by then';
COMMENT ON COLUMN plegwatch.completeness_of_day.nodes_without_minutes IS 'those that recorded nothing on that day';
COMMENT ON COLUMN plegwatch.completeness_of_day.listed_share IS 'share of all nodes'' time, 0 to 1, in which they were listed; null if none is due yet';
COMMENT ON COLUMN plegwatch.completeness_of_day.stream_share IS 'share in which their streams were watched';
COMMENT ON COLUMN plegwatch.completeness_of_day.decided_share IS 'share of transitions that are decided; null without transitions';
COMMENT ON COLUMN plegwatch.completeness_of_day.records_lost IS 'records of that day that were written and never arrived';

COMMENT ON FUNCTION plegwatch.timeline(text, text, timestamptz, timestamptz) IS
  'All that is known of a node in a period, in order of time. A session or gap that lasts into the period is included.';
COMMENT ON COLUMN plegwatch.timeline_entry.at IS 'when it happened; of a change, when the list that showed it ended';
COMMENT ON COLUMN plegwatch.timeline_entry.until IS 'end of a session or gap; null while it lasts, and for anything else';
COMMENT ON COLUMN plegwatch.timeline_entry.kind IS 'agent, event, change, status (a slow one), finding, session, gap, mode or condition';
COMMENT ON COLUMN plegwatch.timeline_entry.what IS 'event type; old -> new state or mode; slow or timed out; kind of finding; scope of a gap';
COMMENT ON COLUMN plegwatch.timeline_entry.pod IS 'namespace/name of the pod';
COMMENT ON COLUMN plegwatch.timeline_entry.container IS 'name of the container; null for a sandbox';
COMMENT ON COLUMN plegwatch.timeline_entry.detail IS 'cause, reason or message';

COMMENT ON FUNCTION plegwatch.last_events(text, text, int4) IS
  'A node''s latest events, newest first: n of them, at most 10,000.';

-- The columns of hours mean what those of minutes do. Any other column without a comment has the one of its name.
DO $$
DECLARE
  uncommented record;
BEGIN
  FOR uncommented IN
    SELECT c.relname AS relation, a.attname AS name, coalesce(col_description(m.attrelid, m.attnum), shared.comment) AS comment
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    LEFT JOIN pg_attribute m ON m.attrelid = to_regclass('plegwatch.' || replace(c.relname, '_hours', '_minutes')) AND m.attname = a.attname
    LEFT JOIN (VALUES
      ('cluster', 'name of the cluster'),
      ('node', 'name of the Node'),
      ('node_uid', 'UID of the Node'),
      ('os_image', 'operating system of the Node'),
      ('kernel_version', 'kernel of the Node'),
      ('labels', 'labels of the Node that --node-labels names: labels ->> ''topology.kubernetes.io/zone'''),
      ('label', 'value of by_label at that time (of a day, at its end); null without by_label'),
      ('last_seen', 'last time at which an agent is known to have run; null if never'),
      ('agent_version', 'version of the agent'),
      ('runtime_name', 'container runtime at the time of the row'),
      ('runtime_version', 'its version'),
      ('kubelet_version', 'version of the kubelet at the time of the row'),
      ('epoch', 'id of the agent''s run'),
      ('seq', 'position of the record in its epoch, from 1; null without a record'),
      ('day', 'UTC date of storage: a condition on it reads fewer partitions'),
      ('minute', 'UTC minute in which the row begins: 07:31:02 can be in the row of 07:30'),
      ('hour', 'UTC hour'),
      ('from_at', 'start of the period'),
      ('to_at', 'end of the period; null while it lasts'),
      ('event_type', 'CREATED, STARTED, STOPPED or DELETED'),
      ('container_id', 'id of the container or sandbox'),
      ('container_name', 'name of the container; null or empty for a sandbox'),
      ('is_sandbox', 'whether it is a sandbox'),
      ('sandbox_id', 'id of its sandbox'),
      ('pod_uid', 'UID of the pod'),
      ('pod_namespace', 'namespace of the pod'),
      ('pod_name', 'name of the pod'),
      ('stream_state', 'event stream: Active, Arming, Silent, Starved, Interrupted, Unsupported, Disabled, Unsafe, Off or Unknown'),
      ('model', 'what the kubelet can do: GenericOnly, EventedCache, EventedHint or Unknown'),
      ('mode', 'mode of the kubelet at the time of the row: Generic, Starting, Evented, Fallback, EventedHint, HintDisabled; Unknown if unobserved or changing'),
      ('not_before', 'last scrape with the mode before, or start of a restarted kubelet'),
      ('consequence', 'what the lost stream means for this kubelet version: wrong_until_restart, slower, hint_lost or unknown; null without fallback'),
      ('finding_id', 'id of the finding, as in the report'),
      ('detected_at', 'when the finding was made'),
      ('cause', 'why, in a word'),
      ('lag_min_ms', 'the published status was behind for at least this long; null if not known'),
      ('lag_max_ms', 'and for at most this long; null if it did not show the change in time, or not yet'),
      ('lag_reason', 'why there is no lag: docs/explanation/status-lag.md'),
      ('decided', 'transitions of which it is known whether their event came'),
      ('missed', 'those whose event was missed and did not come later'),
      ('per_million', 'missed per million'),
      ('low_per_million', 'lower bound of that with 95 % confidence (Wilson)'),
      ('high_per_million', 'upper bound of that with 95 % confidence'),
      ('list_call', 'list call that hung: ListPodSandbox or ListContainers; null if none did'),
      ('why', 'evidence for the verdict, or what is missing'),
      ('message', 'message of the condition'),
      ('pleg_seen_ago_ms', 'time since PLEG was last active, by that message'),
      ('threshold_ms', 'kubelet''s threshold, by that message'),
      ('cpu_some', 'share of the time in which a task waited for a processor; null if the kernel does not say; 0 if at most 0.01'),
      ('io_some', 'share in which a task waited for the disk'),
      ('io_full', 'share in which every task that was not idle waited for the disk'),
      ('memory_some', 'share in which a task waited for memory'),
      ('memory_full', 'share in which every task that was not idle waited for memory')
    ) AS shared (name, comment) ON shared.name = a.attname
    WHERE c.relnamespace = 'plegwatch'::regnamespace AND c.relkind IN ('v', 'c') AND col_description(c.oid, a.attnum) IS NULL
  LOOP
    EXECUTE format('COMMENT ON COLUMN plegwatch.%I.%I IS %L', uncommented.relation, uncommented.name, uncommented.comment);
  END LOOP;
END
$$;
