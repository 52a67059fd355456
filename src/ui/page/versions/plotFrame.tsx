/*
 * A plot with its title, what it says, and its two files.
 */
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { downloadSvg, downloadText } from '../drawing/download.ts';
import { useElementWidth } from '../parts/elementWidth.ts';
import { EmptyNotice } from '../parts/notices.tsx';

interface Props {
  readonly title: string;
  readonly about: string;
  /** The name of its files, without a suffix. */
  readonly file: string;
  readonly csv: () => string;
  readonly empty: string | null;
  readonly draw: (width: number) => ComponentChildren;
}

export function PlotFrame({ title, about, file, csv, empty, draw }: Props) {
  const [ref, width] = useElementWidth<HTMLDivElement>();
  const figure = useRef<HTMLElement>(null);
  const saveSvg = () => {
    const svg = figure.current?.querySelector('svg');
    if (svg) downloadSvg(`plegwatch-${file}.svg`, svg);
  };
  return (
    <figure class="plot-frame" ref={figure}>
      <figcaption>
        <h2>{title}</h2>
        <p>{about}</p>
      </figcaption>
      <div ref={ref}>{empty === null ? width > 0 && draw(width) : <EmptyNotice why={empty} />}</div>
      {empty === null && (
        <p class="actions">
          <button type="button" class="small" onClick={saveSvg} aria-label={`${title} as SVG`}>
            SVG
          </button>
          <button
            type="button"
            class="small"
            onClick={() => downloadText(`plegwatch-${file}.csv`, 'text/csv', csv())}
            aria-label={`${title} as CSV`}
          >
            CSV
          </button>
        </p>
      )}
    </figure>
  );
}
