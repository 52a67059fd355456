/*
 * Mutated messages, many thousands, pass through all code of the agent that reads a runtime's messages, up to the records for the store.
 *
 * PLEGWATCH_SEED selects them. The ordinary run uses the same ones every time, so that only a change makes it fail. A failure shows the number of
 * its message, which the same seed produces again.
 */
import { expect, test } from 'vitest';
import { type Random, randomFor } from '../../devtools/simulator/random.ts';
import { Comparison } from '../../src/agent/compare/comparison.ts';
import { encodeFrame, type Frame, FrameReader } from '../../src/agent/observe/stream/frames.ts';
import {
  CONTAINER_LABELS,
  readContainer,
  readEvent,
  readSandbox,
  SANDBOX_LABELS,
  timesOf,
} from '../../src/cri/items.ts';
import { EndlessAnswer, ListDecoder } from '../../src/cri/lists.ts';
import { decode, MalformedMessage } from '../../src/cri/malformed.ts';
import { profileOf } from '../../src/cri/profiles.ts';
import { ContainerStatusResponse, VersionResponse } from '../../src/cri/runtime.ts';
import type { ListAnswer } from '../../src/protocol/observation.ts';
import { ContainerIdentitySchema, parseRecord } from '../../src/protocol/record.ts';
import { type Mono, millis, mono, shift } from '../../src/protocol/units.ts';
import { type Parsed, parse } from '../../src/protocol/validation.ts';
import { type CriMessageKind, MESSAGE_KINDS, randomMessage } from '../support/messages.ts';
import { mutate } from '../support/mutations.ts';
import { runsOf } from '../support/runs.ts';

const SEED = Number(process.env['PLEGWATCH_SEED'] ?? 20_261_120);
const MESSAGES = runsOf(20_000);
/** Wall clock at the start. */
const START_NS = 1_700_000_000_000_000_000n;
const EVERY: number = millis(1_000);

/** Decoders and comparison of an agent, without sockets and timers. */
class FuzzedAgent {
  readonly #sandboxes = new ListDecoder(readSandbox, SANDBOX_LABELS);
  readonly #containers = new ListDecoder(readContainer, CONTAINER_LABELS);
  readonly comparison = new Comparison({
    epochStart: mono(0),
    overdueAfter: millis(2_000),
    missedAfter: millis(30_000),
    lateAfter: millis(1_000),
    kubeletLateAfter: millis(10_000),
    profile: profileOf({ name: 'containerd', version: 'v2.1.4' }),
    mintId: () => '00000000-0000-4000-8000-000000000000',
  });
  #lastSandboxes: Pick<ListAnswer, 'items' | 'whole'> = { items: new Map(), whole: true };
  #asked: string | undefined;
  #session = 1;

  constructor() {
    this.comparison.subscribed(1, mono(0), START_NS);
  }

  /** Handles a message as the agent does. Throws errors for which {@link isRefusal} is true. */
  take(kind: CriMessageKind, bytes: Buffer, now: Mono): void {
    switch (kind) {
      case 'version':
        this.comparison.runtimeReplaced(profileOf(runtimeOf(bytes)));
        break;
      case 'sandboxes':
        this.#lastSandboxes = read(this.#sandboxes, bytes);
        break;
      case 'containers':
        this.#relisted(bytes, now);
        break;
      case 'status':
        this.#answered(bytes, now);
        break;
      case 'event':
        this.#received(bytes, now);
        break;
    }
  }

  #relisted(bytes: Buffer, now: Mono): void {
    const span = { start: shift(now, millis(-2)), end: now };
    const containers = { ...read(this.#containers, bytes), ...span };
    this.comparison.relisted({ sandboxes: { ...this.#lastSandboxes, ...span }, containers });
  }

  #answered(bytes: Buffer, now: Mono): void {
    const status = decode(ContainerStatusResponse, bytes).status;
    if (status === undefined || this.#asked === undefined) return;
    this.comparison.answered({
      id: this.#asked,
      asked: now,
      at: now,
      found: true,
      times: timesOf(status),
      sandbox: null,
    });
  }

  #received(bytes: Buffer, now: Mono): void {
    const event = readEvent(bytes, this.#session, now);
    if (event !== null) this.comparison.received(event);
  }

  /** Advances the time; every resulting record must be valid for the store. Returns their number. */
  settle(now: Mono): number {
    this.comparison.drained(this.#session, now);
    this.comparison.tick(now, Number(START_NS / 1000n) + now);
    const { emissions, queries } = this.comparison.take();
    this.#asked = queries.at(-1)?.id ?? this.#asked;
    for (const { record, object } of emissions) {
      fits(parseRecord(record), record);
      if (object !== null) fits(parse(ContainerIdentitySchema, object), object);
    }
    return emissions.length;
  }
}

function runtimeOf(bytes: Buffer): { name: string; version: string } {
  const { runtimeName, runtimeVersion } = decode(VersionResponse, bytes);
  return { name: runtimeName, version: runtimeVersion };
}

/** Checks all items of a list, because the comparison ignores unchanged ones. */
function read(reader: ListDecoder, bytes: Buffer): Pick<ListAnswer, 'items' | 'whole'> {
  const { items, whole } = reader.read(bytes);
  for (const [id, { object }] of items) fits(parse(ContainerIdentitySchema, { ...object, id }), object);
  return { items, whole };
}

/** Cheaper than `expect`; there are several calls for each message. */
function fits(parsed: Parsed<unknown>, what: unknown): void {
  if (!parsed.ok) throw new Error(`invalid for the store: ${parsed.error} ${JSON.stringify(what)}`);
}

test(`each of ${MESSAGES} mutated messages is read or refused with a code, and every record is valid for the store`, {
  timeout: 3_600_000,
}, () => {
  const agent = new FuzzedAgent();
  const refused = new Map<CriMessageKind, number>(MESSAGE_KINDS.map((kind) => [kind, 0]));
  let records = 0;
  let most = 0;
  const began = performance.now();
  for (let number = 0; number < MESSAGES; number += 1) {
    const random = randomFor(SEED, number);
    const kind = kindOf(random);
    const now = mono((number + 1) * EVERY);
    const { bytes, how } = mutate(randomMessage(kind, random, START_NS + BigInt(now) * 1000n), random);
    try {
      agent.take(kind, bytes, now);
    } catch (error) {
      if (!isRefusal(error)) throw failureOf(error, number, kind, how);
      refused.set(kind, (refused.get(kind) ?? 0) + 1);
    }
    if (number % 10 === 9) {
      try {
        records += agent.settle(now);
      } catch (error) {
        throw failureOf(error, number, kind, how);
      }
    }
    most = Math.max(most, agent.comparison.tracked);
  }
  const seconds = Math.round(performance.now() - began) / 1000;
  console.info(
    `${MESSAGES} messages of seed ${SEED} in ${seconds} s; ${records} records; at most ${most} ids tracked; refused`,
    Object.fromEntries(refused),
  );
  // Ended ids are dropped, however many there were.
  expect(most).toBeLessThan(MESSAGES / 20);
  // Some messages of every kind are refused, but not most: the mutations are neither too mild nor too coarse.
  for (const count of refused.values()) {
    expect(count).toBeGreaterThan(MESSAGES / 1000);
    expect(count).toBeLessThan(MESSAGES / 5);
  }
});

const CODES: readonly string[] = ['MALFORMED', 'TOO_MANY_ITEMS', 'TOO_MANY_BYTES'];

/** Whether the error is a refusal of a message, with one of the codes. */
function isRefusal(error: unknown): boolean {
  const refusals = [MalformedMessage, EndlessAnswer];
  return refusals.some((each) => error instanceof each && CODES.includes(error.code));
}

/** Half of all messages are events. */
function kindOf(random: Random): CriMessageKind {
  if (random.chance(0.5)) return 'event';
  return MESSAGE_KINDS[Math.floor(random.between(0, MESSAGE_KINDS.length))] ?? 'event';
}

const failureOf = (error: unknown, number: number, kind: CriMessageKind, how: string): Error =>
  new Error(`message ${number} of seed ${SEED}, ${kind}: ${how}`, { cause: error });

test('frames between reader and main process are decoded unchanged, however the pipe splits them', () => {
  const random = randomFor(SEED, 'frames');
  const frames: Frame[] = Array.from({ length: 2_000 }, (_, i) =>
    frameOf(randomFor(SEED, 'frame', i), mono(i)),
  );
  const bytes = Buffer.concat(frames.map(encodeFrame));
  const reader = new FrameReader();
  const read: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + Math.floor(random.between(0, random.chance(0.1) ? 100_000 : 100));
    read.push(...reader.push(bytes.subarray(at, end)));
    at = end;
  }
  expect(read).toEqual(frames);
});

function frameOf(random: Random, at: Mono): Frame {
  const { bytes } = mutate(randomMessage('event', random, START_NS), random);
  const text = bytes.toString('utf8', 0, 500);
  const number = Math.floor(random.between(0, 4));
  if (number === 0) return { is: 'version', at, name: text, version: text };
  if (number === 1) return { is: 'ended', at, code: 'UNKNOWN', message: text };
  if (number === 2) return { is: 'digest', at, id: text, type: 255, createdNs: -(2n ** 63n) };
  return { is: 'event', at, bytes };
}
