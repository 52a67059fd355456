/*
 * Columns of store.relist_minute.
 */
import { type MinuteForm, minuteForm } from '../../protocol/storedRecord.ts';
import { packLists } from '../../store/listTimes.ts';
import { literal } from '../../store/literal.ts';
import { keysOf, recordWriter, timeOf } from './recordWriter.ts';
import { insertRelistMinutes } from './statements.ts';

const arrayLiteral = (counts: readonly number[] | null): string | null =>
  counts === null ? null : literal(counts, (n) => n);

export const writeRelistMinutes = recordWriter('relist_minute', insertRelistMinutes, (rows) => {
  const forms = rows.map(({ scope, record }) => ({ scope, record, form: minuteForm(record, scope.keyOf) }));
  const column = (value: (form: MinuteForm) => number | `${bigint}` | null) =>
    literal(forms, ({ form }) => value(form));
  const time = (offset: (form: MinuteForm) => number | null) =>
    literal(forms, ({ scope, form }) => timeOf(scope, offset(form)));
  const list = <T>(value: (form: MinuteForm) => T): T[] => forms.map(({ form }) => value(form));
  return [
    ...keysOf(rows),
    column((form) => form.relists),
    column((form) => form.errors),
    column((form) => form.max_us),
    list((form) => arrayLiteral(form.hist)),
    column((form) => form.sandboxes),
    column((form) => form.containers),
    column((form) => form.exited_sandboxes),
    column((form) => form.exited_containers),
    column((form) => form.sandbox_list_bytes),
    column((form) => form.container_list_bytes),
    column((form) => form.expected),
    column((form) => form.matched),
    column((form) => form.unobservable),
    column((form) => form.covered_us),
    column((form) => form.span_us),
    column((form) => form.kubelet_relists),
    list((form) => arrayLiteral(form.kubelet_hist)),
    column((form) => form.kubelet_last_seen_age_ms),
    column((form) => form.kubelet_discarded),
    column((form) => form.kubelet_stream_errors),
    list((form) => form.kubelet_list_p99_ms),
    column((form) => form.kubelet_intervals),
    column((form) => form.kubelet_interval_us),
    column((form) => form.kubelet_resident_bytes),
    time((form) => form.kubelet_counted_from),
    time((form) => form.kubelet_counted_to),
    column((form) => form.kubelet_relist_us),
    column((form) => form.kubelet_longest_list_us),
    column((form) => form.kubelet_cpu_us),
    column((form) => form.kubelet_sandbox_lists),
    column((form) => form.kubelet_sandbox_list_errors),
    column((form) => form.kubelet_sandbox_list_us),
    column((form) => form.kubelet_container_lists),
    column((form) => form.kubelet_container_list_errors),
    column((form) => form.kubelet_container_list_us),
    column((form) => form.kubelet_sandbox_statuses),
    column((form) => form.kubelet_sandbox_status_errors),
    column((form) => form.kubelet_sandbox_status_us),
    column((form) => form.kubelet_container_statuses),
    column((form) => form.kubelet_container_status_errors),
    column((form) => form.kubelet_container_status_us),
    column((form) => form.wall_at),
    forms.map(({ record }) => packLists(record.lists)),
    column((form) => form.statuses_asked),
    column((form) => form.statuses_slow),
    column((form) => form.slow_status_key),
    time((form) => form.slow_status_at),
    column((form) => form.slow_status_us),
    list((form) => form.slow_status_timed_out),
    column((form) => form.pressure_us),
    column((form) => form.cpu_some_us),
    column((form) => form.io_some_us),
    column((form) => form.io_full_us),
    column((form) => form.memory_some_us),
    column((form) => form.memory_full_us),
    time((form) => form.hang_from),
    time((form) => form.hang_to),
    column((form) => form.hang_waited_us),
    column((form) => form.hang_listed),
    column((form) => form.hang_asked),
    column((form) => form.hang_quick),
    column((form) => form.hang_unanswered),
    list((form) => form.hang_call),
    list((form) => form.hang_verdict),
    list((form) => arrayLiteral(form.kubelet_start_hist)),
    list((form) => arrayLiteral(form.kubelet_stop_hist)),
  ];
});
