/*
 * Pod scripts: the steps of one pod from the creation of its sandbox to its removal, as the kubelet performs them. A script
 * depends on (seed, slot, number) only, so that the same seed gives the same pods, ids and restarts.
 */

import { ODDITY_NAMES, type Oddity, oddPodScriptOf } from './oddities.ts';
import type { ScriptStep } from './podActions.ts';
import { idFor, type Random, randomFor, uidFor } from './random.ts';

/** The probability of each oddity, instead of an ordinary pod; together at most 1. */
export type OddityProbabilities = Readonly<Partial<Record<Oddity, number>>>;

export interface PodScriptOptions {
  readonly seed: number;
  /** Which of the pods that exist at the same time. */
  readonly slot: number;
  /** Counts the pods of a slot from 0. */
  readonly number: number;
  readonly meanMs: number;
  /** Container restarts in one pod, on average. */
  readonly restarts: number;
  /** The fraction of the drawn length to play, for the first pod of a slot. */
  readonly fraction?: number;
  /** It runs at some moment: the longer a life, the likelier it is to be found. */
  readonly isFound?: boolean;
  readonly odds?: OddityProbabilities;
  /** How long an oddity lasts, in milliseconds. Default 3000. */
  readonly oddForMs?: number;
  /** The longest time that a sandbox stays listed after its DELETED, in milliseconds. Default 200. */
  readonly leadMs?: number;
}

const DEFAULT_LEAD_MS = 200;
const DEFAULT_ODD_FOR_MS = 3000;

/** The share of the mean length that is drawn. */
const VARIABLE = 0.7;

const EXIT_CODES = [0, 0, 1, 137, 143] as const;

/** The script of one pod, ordinary or odd. */
export function podScriptOf(options: PodScriptOptions): readonly ScriptStep[] {
  const oddity = oddityFor(options);
  if (oddity === null) return ordinaryScript(options);
  const { oddForMs: holdMs = DEFAULT_ODD_FOR_MS, leadMs = DEFAULT_LEAD_MS } = options;
  return oddPodScriptOf(oddity, { ...options, holdMs, leadMs });
}

function oddityFor({ seed, slot, number, odds = {} }: PodScriptOptions): Oddity | null {
  let drawn = randomFor(seed, 'odd', slot, number).next();
  for (const oddity of ODDITY_NAMES) {
    drawn -= odds[oddity] ?? 0;
    if (drawn < 0) return oddity;
  }
  return null;
}

function ordinaryScript(options: PodScriptOptions): readonly ScriptStep[] {
  const { seed, slot, number, leadMs = DEFAULT_LEAD_MS } = options;
  const random = randomFor(seed, 'pod', slot, number);
  const name = `pod-${slot}-${number}`;
  const sandbox = idFor(seed, 'sandbox', name);
  const steps: ScriptStep[] = [
    { at: 0, act: { do: 'runPod', pod: { id: sandbox, name, namespace: 'sim', uid: uidFor(seed, name) } } },
  ];
  const length = lengthOf(random, options);
  const last = ['app', ...(random.chance(0.4) ? ['sidecar'] : [])].map((container, index) => {
    const from = 20 * (index + 1) + random.between(0, 60);
    return containerSteps(steps, { ...options, sandbox, name: container, from, until: length }, random);
  });
  finish(steps, { sandbox, containers: last, end: length, leadMs }, random);
  return steps.sort((a, b) => a.at - b.at);
}

// Mostly near the mean, sometimes short or long, but never so long that one pod dominates a seed.
function lengthOf(random: Random, { meanMs, fraction = 1, isFound = false }: PodScriptOptions): number {
  const draw = () => Math.min(-Math.log(1 - random.next()), 4);
  const drawn = draw() + (isFound && random.chance(VARIABLE) ? draw() : 0);
  return Math.max(250, meanMs * (1 - VARIABLE + VARIABLE * drawn) * fraction);
}

interface ContainerPlan extends PodScriptOptions {
  readonly sandbox: string;
  readonly name: string;
  readonly from: number;
  readonly until: number;
}

/** Adds every attempt, without the removal of the last one; returns the id of the last one. */
function containerSteps(steps: ScriptStep[], plan: ContainerPlan, random: Random): string {
  let id = '';
  let at = plan.from;
  for (const [attempt, end] of attemptEnds(plan, random).entries()) {
    const previous = id;
    id = idFor(plan.seed, 'container', plan.sandbox, plan.name, attempt);
    const container = { id, name: plan.name, attempt };
    steps.push({ at, act: { do: 'createContainer', sandbox: plan.sandbox, container } });
    steps.push({ at: at + random.between(2, 20), act: { do: 'startContainer', id } });
    if (previous !== '') {
      steps.push({ at: at + random.between(25, 80), act: { do: 'removeContainer', id: previous } });
    }
    const exitCode = EXIT_CODES[Math.floor(random.between(0, EXIT_CODES.length))] ?? 0;
    steps.push({ at: end, act: { do: 'exitContainer', id, exitCode } });
    at = end + random.between(10, 100);
  }
  return id;
}

/** When each attempt ends; the last one ends with its pod. Attempts are long enough for their own steps. */
function attemptEnds({ from, until, restarts }: ContainerPlan, random: Random): number[] {
  const minMs = 200;
  const ends: number[] = [];
  let start = from;
  while (random.chance(restarts / (1 + restarts))) {
    const end = random.between(start + minMs, until);
    if (end > until - 2 * minMs || end < start + minMs) break;
    ends.push(end);
    start = end + 100;
  }
  return [...ends, until];
}

interface End {
  readonly sandbox: string;
  readonly containers: readonly string[];
  readonly end: number;
  readonly leadMs: number;
}

function finish(steps: ScriptStep[], { sandbox, containers, end, leadMs }: End, random: Random): void {
  const stopped = end + random.between(5, 40);
  steps.push({ at: stopped, act: { do: 'stopPod', sandbox } });
  let at = stopped;
  for (const id of containers) {
    at += random.between(5, 60);
    steps.push({ at, act: { do: 'removeContainer', id } });
  }
  at += random.between(5, 40);
  steps.push({ at, act: { do: 'beginRemoval', sandbox } });
  steps.push({ at: at + random.between(1, leadMs), act: { do: 'finishRemoval', sandbox } });
}
