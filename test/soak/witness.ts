/*
 * A witness of what containerd does: `ctr events` writes down its own event exchange, which neither the CRI nor plegwatch has a part in.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { LocalContainerd } from '../../devtools/localServices/containerd.ts';
import { where } from '../../devtools/localServices/where.ts';
import type { EventType } from '../../src/protocol/record.ts';
import type { Transition } from './account.ts';

const TYPE_OF: Readonly<Record<string, EventType>> = {
  '/containers/create': 'CREATED',
  '/tasks/start': 'STARTED',
  '/tasks/exit': 'STOPPED',
  '/containers/delete': 'DELETED',
};

const LINE = /^(\S+) (\S+) \+0000 UTC \S+ (\S+) (\{.*\})$/;

/** One line of `ctr events`: time, namespace, topic, JSON. Null for topics and processes that no CRI event is about. */
export function transitionOf(line: string): Transition | null {
  const [, day = '', time = '', topic = '', json = ''] = LINE.exec(line) ?? [];
  const type = TYPE_OF[topic];
  if (type === undefined) return null;
  const at = Date.parse(`${day}T${time}Z`);
  const { id, container_id: container } = JSON.parse(json);
  // A task's exit names the process too: one that was executed in the container is none of its transitions.
  if (container !== undefined && id !== undefined && id !== container) return null;
  return { id: container ?? id, type, at };
}

export class Witness {
  /** Everything that was seen, in order. */
  readonly transitions: Transition[] = [];
  readonly #containerd: Pick<LocalContainerd, 'socket' | 'version'>;
  #process: ChildProcess | null = null;

  constructor(containerd: Pick<LocalContainerd, 'socket' | 'version'>) {
    this.#containerd = containerd;
  }

  /** Begins to watch, and again after containerd was restarted. */
  async start(): Promise<void> {
    await this.stop();
    const { socket, version } = this.#containerd;
    const args = ['--address', socket, '--namespace', 'k8s.io', 'events'];
    const process = spawn(where(`ctr-${version}`), args, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#process = process;
    await once(process, 'spawn');
    createInterface({ input: process.stdout }).on('line', (line) => {
      const transition = transitionOf(line);
      if (transition !== null) this.transitions.push(transition);
    });
  }

  async stop(): Promise<void> {
    const process = this.#process;
    this.#process = null;
    if (process === null || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill();
    await exited;
  }
}
