/*
 * The heading of a view of the last days: which period it shows, and the choice of another one.
 */
import type { ComponentChildren } from 'preact';
import { periodInWords } from '../text.ts';
import { Choice } from './choice.tsx';
import { Heading } from './notices.tsx';

interface Props<D extends string> {
  readonly title: string;
  readonly answer: { readonly from: string; readonly to: string } | undefined;
  /** The choices, and what is shown where the address names none of them. */
  readonly days: readonly D[];
  readonly names: Readonly<Record<D, string>>;
  readonly shown: number;
  readonly onDays: (days: number) => void;
  /** More controls. */
  readonly children?: ComponentChildren;
}

export function DaysHeading<D extends string>(props: Props<D>) {
  const { title, answer, days, names, shown, onDays, children } = props;
  return (
    <>
      <Heading title={title}>{answer !== undefined && <p class="soft">{periodInWords(answer)}</p>}</Heading>
      <section class="controls" aria-label="Period">
        <Choice
          name="days"
          legend="Of the last"
          options={days}
          labels={names}
          value={days.find((each) => each === `${shown}`) ?? null}
          onChoose={(chosen) => onDays(Number(chosen))}
        />
        {children}
      </section>
    </>
  );
}
