/*
 * A choice of one of a few words, as a group of radio buttons that look like one control.
 */
interface Props<T extends string> {
  readonly name: string;
  readonly legend: string;
  readonly options: readonly T[];
  readonly labels?: Readonly<Record<T, string>>;
  /** Null if it is none of them. */
  readonly value: T | null;
  readonly onChoose: (value: T) => void;
}

export function Choice<T extends string>({ name, legend, options, labels, value, onChoose }: Props<T>) {
  return (
    <fieldset class="choice">
      <legend>{legend}</legend>
      <div>
        {options.map((option) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => onChoose(option)} />
            <span>{labels?.[option] ?? option}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
