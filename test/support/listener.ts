/*
 * Another subscriber of a runtime's event stream, as a kubelet would be: what it was given, in the order it came.
 */

import { connectCri } from '../../devtools/simulator/criClient.ts';
import type { DrivenPod } from '../../devtools/simulator/podDriver.ts';
import { EVENT_TYPES, type EventType } from '../../src/protocol/record.ts';

export interface Listener {
  /** `id TYPE` of each event. */
  readonly received: readonly string[];
  close(): void;
}

/** Subscribes at once; as with every subscriber, nothing confirms it. Its stream may break: then no more comes. */
export function listen(socket: string): Listener {
  const client = connectCri(socket);
  const received: string[] = [];
  const stream = client.events();
  stream.on('data', ({ containerId, containerEventType }) =>
    received.push(eventKey(containerId, EVENT_TYPES[containerEventType])),
  );
  stream.on('error', () => undefined);
  return {
    received,
    close: () => {
      stream.cancel();
      client.close();
    },
  };
}

export const eventKey = (id: string, type: EventType | undefined): string => `${id} ${type}`;

/** All that a runtime that announces everything says of pods that lived and were removed: 4 for each sandbox and container. */
export function eventsOf(pods: readonly DrivenPod[]): string[] {
  const ids = pods.flatMap(({ sandbox, containers }) => [sandbox, ...Object.values(containers)]);
  return ids.flatMap((id) => EVENT_TYPES.map((type) => eventKey(id, type))).sort();
}

/** Those of the events that are about the pods. */
export function about(pods: readonly DrivenPod[], events: readonly string[]): string[] {
  const wanted = new Set(eventsOf(pods));
  return events.filter((event) => wanted.has(event)).sort();
}
