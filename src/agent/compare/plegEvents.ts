/*
 * The PLEG events that a kubelet's Generic PLEG makes of two successive relists. Sandboxes count as containers.
 *
 * The table is the kubelet's (pkg/kubelet/pleg/generic.go, generateEvents; the same from 1.25 to 1.36):
 *
 *   old \ new      running           exited           unknown            non-existent
 *   non-existent   ContainerStarted  ContainerDied    ContainerChanged   -
 *   running        -                 ContainerDied    ContainerChanged   ContainerDied, ContainerRemoved
 *   exited         ContainerStarted  -                ContainerChanged   ContainerRemoved
 *   unknown        ContainerStarted  ContainerDied    -                  ContainerDied, ContainerRemoved
 */
import type { PlegEvent, PlegState } from '../../protocol/record.ts';

/** The PLEG events of a transition; none where nothing changed. */
export function plegEvents(from: PlegState, to: PlegState): readonly PlegEvent[] {
  if (from === to) return [];
  switch (to) {
    case 'running':
      return ['ContainerStarted'];
    case 'exited':
      return ['ContainerDied'];
    case 'unknown':
      return ['ContainerChanged'];
    case 'non-existent':
      return from === 'exited' ? ['ContainerRemoved'] : ['ContainerDied', 'ContainerRemoved'];
  }
}
