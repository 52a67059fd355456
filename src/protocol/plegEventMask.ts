/*
 * The events that a kubelet's Generic PLEG makes of a state change, as the bits of store.relist_change.pleg_events. Sandboxes count as
 * containers (kubelet pkg/kubelet/pleg/generic.go, generateEvents; the same from 1.25 to 1.36):
 *
 *   old \ new      running           exited           unknown            non-existent
 *   non-existent   ContainerStarted  ContainerDied    ContainerChanged   -
 *   running        -                 ContainerDied    ContainerChanged   ContainerDied, ContainerRemoved
 *   exited         ContainerStarted  -                ContainerChanged   ContainerRemoved
 *   unknown        ContainerStarted  ContainerDied    -                  ContainerDied, ContainerRemoved
 */
import { PLEG_EVENTS, type PlegEvent, type PlegState } from './record.ts';

export function plegEventMask(oldState: PlegState, newState: PlegState): number {
  return plegEvents(oldState, newState).reduce((mask, event) => mask | (1 << PLEG_EVENTS.indexOf(event)), 0);
}

function plegEvents(oldState: PlegState, newState: PlegState): PlegEvent[] {
  if (oldState === newState) return [];
  if (newState === 'running') return ['ContainerStarted'];
  if (newState === 'exited') return ['ContainerDied'];
  if (newState === 'unknown') return ['ContainerChanged'];
  return oldState === 'exited' ? ['ContainerRemoved'] : ['ContainerDied', 'ContainerRemoved'];
}
