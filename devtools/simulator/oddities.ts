/*
 * Oddities: pod scripts with one abnormality each. Their steps are legal for the pods, and the ground truth records them.
 */
import type { PodAction, ScriptStep } from './podActions.ts';
import { idFor, type Random, randomFor, uidFor } from './random.ts';

export interface OddPodOptions {
  readonly seed: number;
  readonly slot: number;
  readonly number: number;
  /** How long the oddity lasts, in milliseconds. */
  readonly holdMs: number;
  /** The longest time that a sandbox stays listed after its DELETED, in milliseconds. */
  readonly leadMs: number;
}

/** Builds the script of one pod step by step; ids are drawn from the seed and the name. */
class Script {
  readonly steps: ScriptStep[] = [];
  readonly random: Random;
  readonly holdMs: number;
  readonly sandbox: string;
  readonly #options: OddPodOptions;
  readonly #name: string;
  #at = 0;

  constructor(options: OddPodOptions) {
    this.#options = options;
    this.#name = `odd-${options.slot}-${options.number}`;
    this.holdMs = options.holdMs;
    this.random = randomFor(options.seed, this.#name);
    this.sandbox = this.#sandboxId(0);
  }

  wait(ms: number): this {
    this.#at += ms;
    return this;
  }

  play(ms: number, act: PodAction): this {
    this.#at += ms;
    this.steps.push({ at: this.#at, act });
    return this;
  }

  pod(attempt = 0) {
    const { seed } = this.#options;
    const id = this.#sandboxId(attempt);
    return { id, name: this.#name, namespace: 'sim', uid: uidFor(seed, this.#name), attempt };
  }

  runPod(attempt = 0, sharedPid = false): string {
    const pod = { ...this.pod(attempt), sharedPid };
    this.play(5, { do: 'runPod', pod });
    return pod.id;
  }

  create(attempt = 0, restored = false): string {
    const id = idFor(this.#options.seed, 'container', this.#name, attempt);
    const container = { id, name: 'app', attempt, restored };
    this.play(10, { do: 'createContainer', sandbox: this.sandbox, container });
    return id;
  }

  run(attempt = 0): string {
    const id = this.create(attempt);
    this.play(5, { do: 'startContainer', id });
    return id;
  }

  exit(id: string, exitCode = 1): this {
    return this.play(0, { do: 'exitContainer', id, exitCode });
  }

  remove(id: string): this {
    return this.play(5, { do: 'removeContainer', id });
  }

  removePod(sandbox = this.sandbox): this {
    return this.play(5, { do: 'stopPod', sandbox }).removeRunningPod(sandbox);
  }

  /** Removes a pod that was not stopped before. */
  removeRunningPod(sandbox = this.sandbox): this {
    this.play(5, { do: 'beginRemoval', sandbox });
    return this.play(this.random.between(1, this.#options.leadMs), { do: 'finishRemoval', sandbox });
  }

  #sandboxId(attempt: number): string {
    return idFor(this.#options.seed, 'sandbox', this.#name, attempt);
  }
}

/** Runs a pod with one container for `holdMs`; returns the container's id. */
function running(script: Script): string {
  script.runPod();
  const id = script.run();
  script.wait(script.holdMs);
  return id;
}

const ODDITIES = {
  'short-life': (script) => {
    script.runPod();
    script.wait(script.holdMs);
    const id = script.run();
    script.wait(script.random.between(1, 50)).exit(id).remove(id).wait(script.holdMs).removePod();
  },
  'stopped-first': (script) => {
    script.runPod();
    const id = script.create();
    script.play(5, { do: 'startContainer', id, exitsAtOnce: 1 });
    script.wait(script.holdMs).remove(id).removePod();
  },
  'failed-start': (script) => {
    script.runPod();
    const id = script.create();
    const failedTimes = script.random.chance(0.5) ? 'zero' : 'same';
    script.play(20, { do: 'exitContainer', id, exitCode: 128, failedTimes });
    script.wait(script.holdMs).remove(id).removePod();
  },
  'unknown-start': (script) => {
    script.runPod();
    const id = script.create();
    script.play(20, { do: 'exitContainer', id, exitCode: 128, unknownStart: true });
    script.wait(script.holdMs).remove(id).removePod();
  },
  'never-started': (script) => {
    script.runPod();
    const id = script.create();
    script.play(script.holdMs, { do: 'stopContainer', id });
    script.wait(script.holdMs).remove(id).removePod();
  },
  'oom-killed': (script) => {
    const id = running(script);
    script.play(0, { do: 'exitContainer', id, exitCode: 137, oomKilled: true });
    script.wait(script.holdMs).remove(id).removePod();
  },
  restored: (script) => {
    script.runPod();
    const id = script.create(0, true);
    script.play(script.holdMs, { do: 'startContainer', id, announce: script.random.chance(0.5) });
    script.wait(script.holdMs).exit(id);
    script.wait(script.holdMs).remove(id).removePod();
  },
  'slow-sandbox': (script) => {
    script.play(0, { do: 'createPod', pod: script.pod() });
    script.wait(script.holdMs).runPod();
    script.wait(script.holdMs).removePod();
  },
  'failed-sandbox': (script) => {
    script.play(0, { do: 'failPod', pod: script.pod(), listed: true });
    script.wait(script.holdMs).removePod();
  },
  'unlisted-sandbox': (script) => {
    script.play(0, { do: 'failPod', pod: script.pod(), listed: false });
  },
  'duplicate-container': (script) => {
    const first = running(script);
    const second = script.run(1);
    script.wait(script.holdMs).exit(first).remove(first);
    script.wait(script.holdMs).exit(second).removePod();
  },
  'duplicate-sandbox': (script) => {
    const first = script.runPod();
    script.wait(script.holdMs);
    const second = script.runPod(1);
    script.wait(script.holdMs).removePod(first).wait(script.holdMs).removePod(second);
  },
  'removed-together': (script) => {
    running(script);
    script.run(1);
    script.wait(script.holdMs).removePod();
  },
  'removed-running': (script) => {
    const id = running(script);
    script.run(1);
    script.play(5, { do: 'removeContainer', id, withSandbox: true });
    script.wait(script.holdMs).removeRunningPod();
  },
  'removed-running-shared': (script) => {
    script.runPod(0, true);
    script.run();
    script.wait(script.holdMs).removeRunningPod();
  },
  'stopped-last': (script) => {
    const id = running(script);
    script.play(5, { do: 'removeContainer', id, stoppedLast: true });
    script.wait(script.holdMs).removePod();
  },
  'state-late': (script) => {
    const id = running(script);
    script.play(0, { do: 'exitContainer', id, exitCode: 1, unnoticed: true });
    script.play(script.holdMs, { do: 'notice', id });
    script.wait(script.holdMs).remove(id).removePod();
  },
  regression: (script) => {
    const id = running(script);
    script.exit(id).play(script.holdMs, { do: 'show', id, shown: 'running' });
    script.play(script.holdMs, { do: 'show', id, shown: null });
    script.wait(script.holdMs).remove(id).removePod();
  },
  'sandbox-regression': (script) => {
    const { sandbox } = script;
    script.runPod();
    script.play(5, { do: 'stopPod', sandbox });
    script.play(script.holdMs, { do: 'show', id: sandbox, shown: 'running' });
    script.play(script.holdMs, { do: 'show', id: sandbox, shown: null });
    script.wait(script.holdMs).removePod();
  },
  unknown: (script) => {
    const id = running(script);
    script.play(0, { do: 'show', id, shown: 'unknown' });
    script.play(script.holdMs, { do: 'show', id, shown: null });
    script.wait(script.holdMs).exit(id).removePod();
  },
  absent: (script) => {
    const id = running(script);
    script.play(0, { do: 'show', id, shown: 'absent' });
    script.play(script.holdMs, { do: 'show', id, shown: null });
    script.wait(script.holdMs).exit(id).removePod();
  },
  'spurious-stopped': (script) => {
    const id = running(script);
    script.play(0, { do: 'spurious', id, type: 'STOPPED' });
    script.wait(script.holdMs).exit(id).removePod();
  },
  'spurious-deleted': (script) => {
    const id = running(script);
    script.exit(id).play(0, { do: 'spurious', id, type: 'DELETED' });
    script.wait(script.holdMs).remove(id).removePod();
  },
  lasting: (script) => {
    const id = running(script);
    script.exit(id).wait(script.holdMs).remove(id).removePod();
  },
} as const satisfies Record<string, (script: Script) => void>;

export type Oddity = keyof typeof ODDITIES;
export const ODDITY_NAMES = Object.keys(ODDITIES) as Oddity[];

/** The script of a pod with one oddity. */
export function oddPodScriptOf(oddity: Oddity, options: OddPodOptions): readonly ScriptStep[] {
  const script = new Script(options);
  ODDITIES[oddity](script);
  return script.steps;
}
