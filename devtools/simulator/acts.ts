/*
 * Acts: the steps of a script as data, and their performance on the pods of a runtime.
 */
import type { EventType } from '../../src/protocol/record.ts';
import { type ContainerSpec, IllegalStep, type PodSpec } from './items.ts';
import type { Pods } from './pods.ts';
import type { Shown } from './truth.ts';

type WithId<T> = T & { readonly id: string };

/** Each is the method of {@link Pods} of the same name. */
export type Act =
  | { readonly do: 'runPod'; readonly pod: WithId<PodSpec> }
  | { readonly do: 'failPod'; readonly pod: WithId<PodSpec>; readonly listed: boolean }
  | { readonly do: 'createContainer'; readonly sandbox: string; readonly container: WithId<ContainerSpec> }
  | { readonly do: 'startContainer'; readonly id: string; readonly exitsAtOnce?: number }
  | {
      readonly do: 'exitContainer';
      readonly id: string;
      readonly exitCode: number;
      readonly unnoticed?: boolean;
      readonly failedTimes?: 'zero' | 'same';
    }
  | { readonly do: 'removeContainer' | 'notice'; readonly id: string }
  | { readonly do: 'show'; readonly id: string; readonly shown: Shown | null }
  | { readonly do: 'spurious'; readonly id: string; readonly type: EventType }
  | { readonly do: 'stopPod' | 'beginRemoval' | 'finishRemoval'; readonly sandbox: string };

/** `at` is in milliseconds from the start of the life; steps are in the order in which they happen. */
export interface Step {
  readonly at: number;
  readonly act: Act;
}

/** What happens to a container by itself, whether the runtime's process is there or not. */
export const needsRuntime = (act: Act): boolean => act.do !== 'exitContainer';

/** Plays one step of a script. Throws IllegalStep where somebody else has interfered with the pod. */
export function perform(pods: Pods, act: Act): void {
  switch (act.do) {
    case 'runPod':
      pods.runPod(act.pod);
      return;
    case 'failPod':
      pods.failPod(act.pod, act);
      return;
    case 'createContainer':
      pods.createContainer(act.sandbox, act.container);
      return;
    case 'startContainer':
    case 'exitContainer':
      pods[act.do](act.id, act);
      return;
    case 'removeContainer':
    case 'notice':
      pods[act.do](act.id);
      return;
    case 'show':
      pods.show(act.id, act.shown);
      return;
    case 'spurious':
      pods.spurious(act.id, act.type);
      return;
    default:
      pods[act.do](act.sandbox);
  }
}

/** The same; what others have ended or removed before cannot be done again, and is left out. */
export function performIfPossible(pods: Pods, act: Act): void {
  try {
    perform(pods, act);
  } catch (error) {
    if (!(error instanceof IllegalStep)) throw error;
  }
}
