/*
 * Copies a text. Where the browser does not allow it, as on a page without TLS, the text is shown to be copied by hand.
 */
import { useEffect, useRef, useState } from 'preact/hooks';

interface Props {
  readonly text: string;
  readonly label: string;
}

type Outcome = 'none' | 'copied' | 'byHand';
const SHOWN_MS = 4000;

export function CopyButton({ text, label }: Props) {
  const [outcome, setOutcome] = useState<Outcome>('none');
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (outcome === 'byHand') area.current?.select();
    if (outcome !== 'copied') return undefined;
    const timer = setTimeout(() => setOutcome('none'), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome('copied');
    } catch (error) {
      console.info('the browser does not let this page copy', error);
      setOutcome('byHand');
    }
  };
  return (
    <>
      <button type="button" onClick={copy}>
        {outcome === 'copied' ? 'Copied' : label}
      </button>
      <span class="only-read" role="status">
        {outcome === 'copied' ? 'Copied.' : ''}
      </span>
      {outcome === 'byHand' && (
        <label class="by-hand">
          This browser does not let the page copy. Copy it from here:
          <textarea ref={area} readOnly rows={8} value={text} />
        </label>
      )}
    </>
  );
}
