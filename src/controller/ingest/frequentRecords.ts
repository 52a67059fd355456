/*
 * Recognises events and relist changes, which nearly all records are, without the schema, which takes several times as long and copies them.
 * The schema judges the others, and says what is wrong with them.
 */
import { EXIT_REASONS, MAX_OFFSET, PLEG_STATES, type RecordOf } from '../../protocol/record.ts';
import { MAX_ID_LENGTH } from '../../protocol/text.ts';

type Fields = Readonly<Record<string, unknown>>;

const REASONS: ReadonlySet<unknown> = new Set(EXIT_REASONS);
const STATES: ReadonlySet<unknown> = new Set(PLEG_STATES);
const NANOS = /^-?\d{1,19}$/;

/** True only of what the schema accepts and returns unchanged. */
export function isFrequentRecord(
  input: unknown,
): input is RecordOf<'container_event'> | RecordOf<'relist_change'> {
  if (!isObject(input) || !isTime(input['t']) || !isId(input['containerId'])) return false;
  if (typeof input['isSandbox'] !== 'boolean') return false;
  return isEvent(input) || isChange(input);
}

const isEvent = (fields: Fields): boolean =>
  fields['type'] === 'container_event' &&
  isByte(fields['eventType']) &&
  typeof fields['createdNs'] === 'string' &&
  NANOS.test(fields['createdNs']) &&
  typeof fields['replayed'] === 'boolean' &&
  typeof fields['hasSandboxStatus'] === 'boolean' &&
  (fields['exit'] === undefined || isExit(fields['exit'])) &&
  fieldCount(fields) === ('exit' in fields ? 9 : 8);

const isExit = (exit: unknown): boolean =>
  isObject(exit) &&
  (exit['code'] === null || isByte(exit['code'])) &&
  REASONS.has(exit['reason']) &&
  fieldCount(exit) === 2;

function isChange(fields: Fields): boolean {
  const window = fields['window'];
  return (
    fields['type'] === 'relist_change' &&
    isObject(window) &&
    isTime(window['from']) &&
    isTime(window['to']) &&
    fieldCount(window) === 2 &&
    STATES.has(fields['oldState']) &&
    STATES.has(fields['newState']) &&
    fieldCount(fields) === 7
  );
}

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

const isTime = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Math.abs(Number(value)) <= MAX_OFFSET;

const isByte = (value: unknown): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255;

const isId = (value: unknown): boolean =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_ID_LENGTH && !value.includes('\0');

function fieldCount(fields: Fields): number {
  let count = 0;
  for (const _ in fields) count += 1;
  return count;
}
