/*
 * Another subscriber of a runtime's event stream, as a kubelet is, with what it received, in order.
 */

import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { DrivenPod } from '../../devtools/simulator/podDriver.ts';
import type { ContainerEventResponse } from '../../src/cri/runtime.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';

export interface Listener {
  /** `id TYPE` of each event. */
  readonly received: readonly string[];
  /** How containers ended, by id, as the event of their stop said: the code and the reason. */
  readonly ends: ReadonlyMap<string, readonly [number, string]>;
  close(): void;
}

/** Subscribes at once, without a confirmation. After its stream breaks it receives nothing more. */
export function listen(socket: string): Listener {
  const client = connectCri(socket);
  const received: string[] = [];
  const ends = new Map<string, readonly [number, string]>();
  const stream = client.events();
  stream.on('data', ({ containerId, containerEventType, containersStatuses }: ContainerEventResponse) => {
    const type = EVENT_TYPES[containerEventType];
    received.push(eventKey(containerId, type));
    const own = containersStatuses.find(({ id }) => id === containerId);
    if (type === 'STOPPED' && own !== undefined) ends.set(containerId, [own.exitCode, own.reason]);
  });
  stream.on('error', () => undefined);
  return {
    received,
    ends,
    close: () => {
      stream.cancel();
      client.close();
    },
  };
}

export const eventKey = (id: string, type: EventType | undefined): string => `${id} ${type}`;

/** The events of pods that were run and removed, if the runtime announces all: 4 for each sandbox and container. */
export function eventsOf(pods: readonly DrivenPod[]): string[] {
  const ids = pods.flatMap(({ sandbox, containers }) => [sandbox, ...Object.values(containers)]);
  return ids.flatMap((id) => EVENT_TYPES.map((type) => eventKey(id, type))).sort();
}

/** Those of the events that came after one of a later stage of the same id. */
export function disordered(events: readonly string[]): string[] {
  const furthest = new Map<string, number>();
  return events.filter((event) => {
    const [id = '', type = ''] = event.split(' ');
    const stage = (EVENT_TYPES as readonly string[]).indexOf(type);
    const before = furthest.get(id) ?? -1;
    furthest.set(id, Math.max(before, stage));
    return stage < before;
  });
}

/**
 * Those that a runtime announces however busy the machine is. The STOPPED of a sandbox it may lose: containerd announces it only if the
 * sandbox was not removed before it gets to it (internal/cri/server/events.go, startSandboxExitMonitor).
 */
export function certainOf(pods: readonly DrivenPod[]): string[] {
  const uncertain = new Set(pods.map(({ sandbox }) => eventKey(sandbox, 'STOPPED')));
  return eventsOf(pods).filter((event) => !uncertain.has(event));
}

export function onlyCertainOf(pods: readonly DrivenPod[], events: readonly string[]): string[] {
  const certain = new Set(certainOf(pods));
  return events.filter((event) => certain.has(event)).sort();
}

/** The events of these pods. */
export function onlyOf(pods: readonly DrivenPod[], events: readonly string[]): string[] {
  const wanted = new Set(eventsOf(pods));
  return events.filter((event) => wanted.has(event)).sort();
}
