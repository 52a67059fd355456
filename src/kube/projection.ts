/*
 * The parts of a Node that the controller keeps: its UID, the labels that reports have too, what is stored of it, its Ready condition as
 * written by the kubelet or the node controller, and the conditions that plegwatch publishes on it.
 */
import * as v from 'valibot';
import { printable } from '../platform/printable.ts';
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

/** The conditions that plegwatch publishes on Nodes (src/controller/nodeConditions/publisher.ts). */
export const PUBLISHED_TYPES = ['PLEGKubeletFallback', 'PLEGListsFailing', 'PLEGEvidenceIncomplete'] as const;
export type PublishedType = (typeof PUBLISHED_TYPES)[number];

/** As the Node has it. The times are as the API server writes them; null if it does not. */
export interface PublishedCondition {
  readonly type: PublishedType;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string | null;
  readonly lastHeartbeatTime: string | null;
}

export type Labels = Readonly<Record<string, string>>;

/** The fields that distinguish a Node from others when they are compared. Texts are printable and bounded. */
export interface NodeInfo {
  /** Those with a key that was asked for, ordered by key. */
  readonly labels: Labels;
  /** Empty until a kubelet reports. */
  readonly osImage: string;
  readonly kernelVersion: string;
}

export interface KubeNode {
  readonly uid: string;
  /** As the API server writes it; null if it does not. */
  readonly createdAt: string | null;
  /** Those with a key that was asked for, ordered by key. */
  readonly labels: Labels;
  readonly info: NodeInfo;
  /** Null until a kubelet reports. */
  readonly ready: ReadyCondition | null;
  /** Those of {@link PUBLISHED_TYPES} that it has, in that order, whoever wrote them. */
  readonly published: readonly PublishedCondition[];
}

export interface NamedNode {
  readonly name: string;
  readonly node: KubeNode;
}

/** Texts of a Node are truncated to these lengths: anybody who may write Nodes can put anything there. */
const MAX_LENGTHS = { status: 20, reason: 200, message: 4_000, info: 120 };

const Condition = v.looseObject({
  type: v.string(),
  status: v.optional(v.string(), ''),
  reason: v.optional(v.string(), ''),
  message: v.optional(v.string(), ''),
  lastTransitionTime: v.optional(v.nullable(v.string()), null),
  lastHeartbeatTime: v.optional(v.nullable(v.string()), null),
});

const Status = v.looseObject({ conditions: v.optional(v.array(v.unknown()), []) });
const StatusWithInfo = v.looseObject({
  nodeInfo: v.looseObject({ osImage: v.optional(v.string(), ''), kernelVersion: v.optional(v.string(), '') }),
});

export interface NodeLabelKeys {
  /** Keys of the labels that reports have too. */
  readonly reported: readonly string[];
  /** Keys of those that are stored. */
  readonly stored: readonly string[];
}

export function nodeOf({ metadata, ...fields }: KubeObject, keys: NodeLabelKeys): NamedNode {
  const labels = labelsOf(metadata, keys.reported);
  const { name, uid, creationTimestamp: createdAt } = metadata;
  const status = fields['status'];
  const info = infoOf(labelsOf(metadata, keys.stored), status);
  const conditions = conditionsOf(status);
  const ready = readyOf(conditions);
  return { name, node: { uid, createdAt, labels, info, ready, published: publishedOf(conditions) } };
}

function infoOf(labels: Labels, status: unknown): NodeInfo {
  const parsed = v.safeParse(StatusWithInfo, status);
  const { osImage = '', kernelVersion = '' } = parsed.success ? parsed.output.nodeInfo : {};
  return {
    labels: Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, infoText(value)])),
    osImage: infoText(osImage),
    kernelVersion: infoText(kernelVersion),
  };
}

const infoText = (text: string): string => printable(text.slice(0, MAX_LENGTHS.info));

/** The labels with these keys that an object has. */
export function labelsOf(metadata: KubeObject['metadata'], keys: readonly string[]): Labels {
  const all: unknown = metadata['labels'];
  const value = (key: string): unknown => Reflect.get(Object(all), key);
  const present = keys.toSorted().filter((key) => typeof value(key) === 'string');
  return Object.fromEntries(present.map((key) => [key, String(value(key))]));
}

export const isSameLabels = (one: Labels, other: Labels): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

type RawCondition = v.InferOutput<typeof Condition>;

function conditionsOf(status: unknown): readonly RawCondition[] {
  const parsed = v.safeParse(Status, status);
  if (!parsed.success) return [];
  return parsed.output.conditions.flatMap((raw) => {
    const condition = v.safeParse(Condition, raw);
    return condition.success ? [condition.output] : [];
  });
}

function readyOf(conditions: readonly RawCondition[]): ReadyCondition | null {
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined) return null;
  const { lastTransitionTime, lastHeartbeatTime } = ready;
  return {
    ...textsOf(ready),
    transitionAt: microsOf(lastTransitionTime),
    heartbeatAt: microsOf(lastHeartbeatTime),
  };
}

const publishedOf = (conditions: readonly RawCondition[]): readonly PublishedCondition[] =>
  PUBLISHED_TYPES.flatMap((type) => {
    const condition = conditions.find((each) => each.type === type);
    if (condition === undefined) return [];
    const { lastTransitionTime, lastHeartbeatTime } = condition;
    return [{ type, ...textsOf(condition), lastTransitionTime, lastHeartbeatTime }];
  });

const textsOf = ({ status, reason, message }: RawCondition) => ({
  status: storable(status, MAX_LENGTHS.status),
  reason: storable(reason, MAX_LENGTHS.reason),
  message: storable(message, MAX_LENGTHS.message),
});

/** Postgres does not accept NUL in text. */
const storable = (text: string, maxLength: number): string => text.replaceAll('\0', '').slice(0, maxLength);

function microsOf(time: string | null): number | null {
  const ms = time === null ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? null : ms * 1000;
}

/** Ignores heartbeats of kubelets, which every node sends every few minutes. */
export function isSameNode(one: KubeNode | undefined, other: KubeNode | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.uid === other.uid &&
    isSameLabels(one.labels, other.labels) &&
    JSON.stringify(one.info) === JSON.stringify(other.info) &&
    JSON.stringify(one.published) === JSON.stringify(other.published) &&
    isSameReady(one.ready, other.ready)
  );
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
