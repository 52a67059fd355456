/*
 * The parts of a Node that the controller keeps: its UID, and its Ready condition as written by the kubelet or the node controller.
 */
import * as v from 'valibot';
import type { KubeObject } from './object.ts';

export interface ReadyCondition {
  /** `True`, `False` or `Unknown`. */
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** When the status last changed, in microseconds since 1970; null if unknown. */
  readonly transitionAt: number | null;
  /** When the condition was last written. */
  readonly heartbeatAt: number | null;
}

export interface KubeNode {
  readonly uid: string;
  /** Null until a kubelet reports. */
  readonly ready: ReadyCondition | null;
}

export interface NamedNode {
  readonly name: string;
  readonly node: KubeNode;
}

/** Texts of a Node are truncated to these lengths: anybody who may write Nodes can put anything there. */
const MAX_LENGTHS = { status: 20, reason: 200, message: 4_000 };

const Condition = v.looseObject({
  type: v.string(),
  status: v.optional(v.string(), ''),
  reason: v.optional(v.string(), ''),
  message: v.optional(v.string(), ''),
  lastTransitionTime: v.optional(v.nullable(v.string()), null),
  lastHeartbeatTime: v.optional(v.nullable(v.string()), null),
});

const Status = v.looseObject({ conditions: v.optional(v.array(v.unknown()), []) });

export function nodeOf({ metadata, ...fields }: KubeObject): NamedNode {
  return { name: metadata.name, node: { uid: metadata.uid, ready: readyOf(fields['status']) } };
}

function readyOf(status: unknown): ReadyCondition | null {
  const parsed = v.safeParse(Status, status);
  if (!parsed.success) return null;
  for (const raw of parsed.output.conditions) {
    const condition = v.safeParse(Condition, raw);
    if (!condition.success || condition.output.type !== 'Ready') continue;
    const { output } = condition;
    return {
      status: storable(output.status, MAX_LENGTHS.status),
      reason: storable(output.reason, MAX_LENGTHS.reason),
      message: storable(output.message, MAX_LENGTHS.message),
      transitionAt: microsOf(output.lastTransitionTime),
      heartbeatAt: microsOf(output.lastHeartbeatTime),
    };
  }
  return null;
}

/** Postgres does not accept NUL in text. */
const storable = (text: string, maxLength: number): string => text.replaceAll('\0', '').slice(0, maxLength);

function microsOf(time: string | null): number | null {
  const ms = time === null ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? null : ms * 1000;
}

/** Ignores heartbeats, which every node sends every few minutes. */
export function isSameNode(one: KubeNode | undefined, other: KubeNode | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.uid === other.uid && isSameReady(one.ready, other.ready);
}

function isSameReady(one: ReadyCondition | null, other: ReadyCondition | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.status === other.status &&
    one.reason === other.reason &&
    one.message === other.message &&
    one.transitionAt === other.transitionAt
  );
}
