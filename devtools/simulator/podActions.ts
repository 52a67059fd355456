/*
 * Pod actions: the steps of a pod script as data, and their execution on the pods of a runtime.
 */
import type { EventType } from '../../src/protocol/record.ts';
import type { ShownItemState } from './groundTruth.ts';
import { IllegalStep, type SimulatedContainerSpec, type SimulatedPodSpec } from './podModel.ts';
import type { SimulatedPods } from './pods.ts';

type WithId<T> = T & { readonly id: string };

/** Each is the method of {@link SimulatedPods} of the same name. */
export type PodAction =
  | { readonly do: 'createPod' | 'runPod'; readonly pod: WithId<SimulatedPodSpec> }
  | { readonly do: 'failPod'; readonly pod: WithId<SimulatedPodSpec>; readonly listed: boolean }
  | {
      readonly do: 'createContainer';
      readonly sandbox: string;
      readonly container: WithId<SimulatedContainerSpec>;
    }
  | {
      readonly do: 'startContainer';
      readonly id: string;
      readonly exitsAtOnce?: number;
      readonly announce?: boolean;
    }
  | {
      readonly do: 'exitContainer';
      readonly id: string;
      readonly exitCode: number;
      readonly unnoticed?: boolean;
      readonly failedTimes?: 'zero' | 'same';
      readonly unknownStart?: boolean;
      readonly oomKilled?: boolean;
    }
  | {
      readonly do: 'removeContainer';
      readonly id: string;
      readonly stoppedLast?: boolean;
      readonly withSandbox?: boolean;
    }
  | { readonly do: 'stopContainer' | 'notice'; readonly id: string }
  | { readonly do: 'show'; readonly id: string; readonly shown: ShownItemState | null }
  | { readonly do: 'spurious'; readonly id: string; readonly type: EventType }
  | { readonly do: 'stopPod' | 'beginRemoval' | 'finishRemoval'; readonly sandbox: string };

/** `at` is in milliseconds from the start of the script; steps are in order of time. */
export interface ScriptStep {
  readonly at: number;
  readonly act: PodAction;
}

/** False for an exit, which happens even while the runtime is down. */
export const needsRuntime = (act: PodAction): boolean => act.do !== 'exitContainer';

/** Performs one action. Throws IllegalStep where another client changed the pod. */
export function perform(pods: SimulatedPods, act: PodAction): void {
  switch (act.do) {
    case 'createPod':
    case 'runPod':
      pods[act.do](act.pod);
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
      pods.removeContainer(act.id, act);
      return;
    case 'stopContainer':
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

/** The same, but skips an action that is no longer possible because another client changed the pod. */
export function performIfPossible(pods: SimulatedPods, act: PodAction): void {
  try {
    perform(pods, act);
  } catch (error) {
    if (!(error instanceof IllegalStep)) throw error;
  }
}
