/*
 * A pool as one slide, 16:9, in letters that a projector shows: what its view says, and nothing else.
 */
import { render } from 'preact';
import type { PoolAnswer, PoolKey } from '../../api.ts';
import { downloadSvg } from '../drawing/download.ts';
import { VERDICTS, VerdictBar, verdictsInWords } from '../drawing/verdictBar.tsx';
import { cutTo, linesOf, periodInWords } from '../text.ts';
import { poolFigures, poolTitle, sourceOfPool, verdictsOf } from './poolWords.ts';
import { RelistLines, relistsInWords } from './relistPlot.tsx';

interface Props {
  readonly answer: PoolAnswer;
  readonly poolKey: PoolKey;
}

const [WIDTH, HEIGHT] = [1280, 720];
const EDGE = 44;
const ACROSS = WIDTH - 2 * EDGE;

/** Draws it where nobody sees it, with the colours of the page, and hands it over as a file. */
export function downloadSlide(props: Props, file: string): void {
  const host = document.createElement('div');
  host.className = 'only-read';
  document.body.append(host);
  render(<Slide {...props} />, host);
  const svg = host.querySelector('svg');
  if (svg !== null) downloadSvg(file, svg);
  render(null, host);
  host.remove();
}

function Slide({ answer, poolKey }: Props) {
  const title = poolTitle(poolKey);
  const verdicts = verdictsOf(answer.nodes);
  const figures = poolFigures(answer);
  const column = ACROSS / figures.length;
  return (
    <svg
      class="slide"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${title}, ${periodInWords(answer)}. ${answer.sentence} ${verdictsInWords(verdicts)}. ${relistsInWords(answer)}`}
    >
      <title>{`${title}: ${answer.sentence}`}</title>
      <text class="slide-title" x={EDGE} y="58">
        {cutTo(title, 62)}
      </text>
      <text class="slide-small" x={EDGE} y="88">
        {periodInWords(answer)}
      </text>
      <rect
        class={`tone-${VERDICTS.find(({ key }) => key === answer.verdict)?.tone}`}
        x={EDGE}
        y="108"
        width="8"
        height="84"
      />
      {linesOf(answer.sentence, 88, 3).map((line, n) => (
        <text key={line} class="slide-verdict" x={EDGE + 22} y={130 + 28 * n}>
          {line}
        </text>
      ))}
      {figures.map(({ name, value, detail, isBad }, n) => (
        <g key={name} transform={`translate(${EDGE + n * column} 0)`}>
          <text class="slide-small" x="0" y="228">
            {name}
          </text>
          <text class={isBad ? 'slide-value is-bad' : 'slide-value'} x="0" y="264">
            {cutTo(value, 16)}
          </text>
          {linesOf(detail, 24, 3).map((line, at) => (
            <text key={line} class="slide-small" x="0" y={288 + 20 * at}>
              {line}
            </text>
          ))}
        </g>
      ))}
      <g transform={`translate(${EDGE} 352)`}>
        <VerdictBar verdicts={verdicts} width={ACROSS} height={32} letter={18} />
      </g>
      <text class="slide-small" x={EDGE} y="412">
        Longest relist of each node
      </text>
      <g transform={`translate(${EDGE} 412)`}>
        <RelistLines answer={answer} width={ACROSS} height={250} letter={17} />
      </g>
      {linesOf(sourceOfPool(answer), 140, 2).map((line, n) => (
        <text key={line} class="slide-small" x={EDGE} y={684 + 20 * n}>
          {line}
        </text>
      ))}
    </svg>
  );
}
