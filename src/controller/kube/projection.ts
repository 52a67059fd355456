/*
 * What is kept of a Node: its UID, and its Ready condition as the kubelet, or the node controller in its place, wrote it.
 */
import * as v from 'valibot';
import type { KubeObject } from './object.ts';

export interface ReadyCondition {
  /** `True`, `False` or `Unknown`. */
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** When the status last became another, in microseconds since 1970; null where that is not said. */
  readonly transitionAt: number | null;
  /** When it was last written. It alone makes no other condition. */
  readonly heartbeatAt: number | null;
}

export interface KubeNode {
  readonly uid: string;
  /** Null before a kubelet has reported. */
  readonly ready: ReadyCondition | null;
}

export interface NamedNode {
  readonly name: string;
  readonly node: KubeNode;
}

/** What anybody with the right to write a Node may put into it is cut to what a row may hold. */
const LONGEST = { status: 20, reason: 200, message: 4_000 };

const Condition = v.looseObject({
  type: v.string(),
  status: v.optional(v.string(), ''),
  reason: v.optional(v.string(), ''),
  message: v.optional(v.string(), ''),
  lastTransitionTime: v.optional(v.nullable(v.string()), null),
  lastHeartbeatTime: v.optional(v.nullable(v.string()), null),
});

const Status = v.looseObject({ conditions: v.optional(v.array(v.unknown()), []) });

export function nodeOf({ metadata, ...rest }: KubeObject): NamedNode {
  return { name: metadata.name, node: { uid: metadata.uid, ready: readyOf(rest['status']) } };
}

function readyOf(status: unknown): ReadyCondition | null {
  const parsed = v.safeParse(Status, status);
  if (!parsed.success) return null;
  for (const raw of parsed.output.conditions) {
    const condition = v.safeParse(Condition, raw);
    if (!condition.success || condition.output.type !== 'Ready') continue;
    const { output } = condition;
    return {
      status: storable(output.status, LONGEST.status),
      reason: storable(output.reason, LONGEST.reason),
      message: storable(output.message, LONGEST.message),
      transitionAt: microsOf(output.lastTransitionTime),
      heartbeatAt: microsOf(output.lastHeartbeatTime),
    };
  }
  return null;
}

/** Postgres takes no NUL in a text. */
const storable = (text: string, longest: number): string => text.replaceAll('\0', '').slice(0, longest);

function microsOf(time: string | null): number | null {
  const ms = time === null ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? null : ms * 1000;
}

/** A heartbeat alone makes no difference: there is one every few minutes on every node. */
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
