/*
 * `lists` of a minute as the store keeps it: a third of the bytes of its numbers. One call follows another after nearly the same time, so each relist is
 * said by how it differs from that; store.relists_of reads the same in SQL.
 *
 *   start      2 × how much later its first call began than expected, as long after the one before as that one was after its predecessor
 *              + 1 if flags or the last event differ from those of the relist before
 *   flags, events   only then: the flags, and how much later the last event came
 *   calls      how long the first call took, how long it was until the second one, and how long that took
 *
 * Each number is seven bits a byte, the lowest first; each difference n is 2n, or -2n - 1 if it is negative.
 */
import { LIST_FIELDS } from '../protocol/record.ts';

export function packLists(lists: readonly number[]): Buffer {
  const bytes: number[] = [];
  let from = 0;
  let step = 0;
  let flags = 0;
  let eventsTo = 0;
  for (let i = 0; i + LIST_FIELDS.length <= lists.length; i += LIST_FIELDS.length) {
    const [began = 0, answered = 0, beganSecond = 0, answeredSecond = 0, flagsNow = 0, eventsNow = 0] =
      lists.slice(i, i + LIST_FIELDS.length);
    const differs = flagsNow !== flags || eventsNow !== eventsTo;
    add(bytes, 2 * signed(began - from - step) + (differs ? 1 : 0));
    if (differs) {
      add(bytes, signed(flagsNow));
      add(bytes, signed(eventsNow - eventsTo));
    }
    add(bytes, signed(answered - began));
    add(bytes, signed(beganSecond - answered));
    add(bytes, signed(answeredSecond - beganSecond));
    [step, from, flags, eventsTo] = [began - from, began, flagsNow, eventsNow];
  }
  return Buffer.from(bytes);
}

/** The numbers that were packed. */
export function unpackLists(packed: Uint8Array): number[] {
  const lists: number[] = [];
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = packed[at] ?? 0;
      at += 1;
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  };
  const difference = (value = next()) => (value % 2 === 0 ? value / 2 : -(value + 1) / 2);
  let from = 0;
  let step = 0;
  let flags = 0;
  let eventsTo = 0;
  while (at < packed.length) {
    const start = next();
    const began = from + step + difference(Math.floor(start / 2));
    if (start % 2 === 1) {
      flags = difference();
      eventsTo += difference();
    }
    const answered = began + difference();
    const beganSecond = answered + difference();
    lists.push(began, answered, beganSecond, beganSecond + difference(), flags, eventsTo);
    [step, from] = [began - from, began];
  }
  return lists;
}

const signed = (n: number): number => (n < 0 ? -2 * n - 1 : 2 * n);

function add(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push(128 + (rest % 128));
  bytes.push(rest);
}
