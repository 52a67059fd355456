/*
 * The order in which the faults of a schedule began and ended, as text: `+0 +1 -0` says that the second began before the first ended. A fault begins
 * when its part is free.
 */
export interface Step {
  readonly is: 'begins' | 'ends';
  /** Its place in the schedule. */
  readonly fault: number;
}

export const stepText = ({ is, fault }: Step): string => `${is === 'begins' ? '+' : '-'}${fault}`;

export const orderText = (steps: readonly Step[]): string => steps.map(stepText).join(' ');

/** Null for a text in which not each of these faults begins once and then ends once. */
export function parseOrder(text: string, faults: number): readonly Step[] | null {
  const steps = text.split(' ').flatMap((each): Step[] => {
    const [, sign, fault] = /^([+-])(\d+)$/.exec(each) ?? [];
    return fault === undefined ? [] : [{ is: sign === '+' ? 'begins' : 'ends', fault: Number(fault) }];
  });
  const placeOf = (is: Step['is'], fault: number) =>
    steps.findIndex((step) => step.is === is && step.fault === fault);
  const all = Array.from({ length: faults }, (_, fault) => fault);
  const isOrder = all.every(
    (fault) => placeOf('begins', fault) in steps && placeOf('begins', fault) < placeOf('ends', fault),
  );
  return isOrder && steps.length === 2 * faults && orderText(steps) === text ? steps : null;
}
