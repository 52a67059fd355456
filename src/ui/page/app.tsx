/*
 * The frame around the views: who asks, where the reader is, and the way between the views.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { FallbacksView } from './fallbacks/fallbacksView.tsx';
import { FindingView } from './finding/findingView.tsx';
import { FleetView } from './fleet/fleetView.tsx';
import { HoursView } from './hours/hoursView.tsx';
import { Client, type Problem } from './parts/client.ts';
import { AccessContext } from './parts/polling.ts';
import { TokenForm } from './parts/tokenForm.tsx';
import {
  DEFAULT_PERIOD,
  FALLBACKS,
  FLEET,
  fragmentOf,
  type Go,
  HOURS,
  type Place,
  POOL_PERIOD,
  placeOf,
  UNOBSERVED,
  VERSIONS,
  type ViewProps,
} from './place.ts';
import { PoolView } from './pool/poolView.tsx';
import { poolTitle } from './pool/poolWords.ts';
import { firstPlace, recordOf, sourceOf, within } from './record.ts';
import { moment, msOf, visible } from './text.ts';
import { NodeView } from './timeline/nodeView.tsx';
import { UnobservedView } from './unobserved/unobservedView.tsx';
import { VersionsView } from './versions/versionsView.tsx';

const record = recordOf(document);
const client = new Client();
const source = record === undefined ? client : sourceOf(record);

export function App() {
  const [place, go] = usePlace();
  const [number, setNumber] = useState(0);
  const [refusal, setRefusal] = useState<Problem>();
  const access = useMemo(
    () => ({ client: source, isRecord: record !== undefined, number, refused: setRefusal }),
    [number],
  );
  const signIn = (token: string | null) => {
    client.token = token;
    setRefusal(undefined);
    setNumber((last) => last + 1);
  };
  return (
    <AccessContext.Provider value={access}>
      <Frame place={place} onSignOut={client.token === null ? undefined : () => signIn(null)}>
        {refusal === undefined ? (
          <View place={place} go={go} />
        ) : (
          <TokenForm problem={refusal} onToken={signIn} />
        )}
      </Frame>
    </AccessContext.Provider>
  );
}

function usePlace(): readonly [Place, Go] {
  const [place, setPlace] = useState(placeOfAddress);
  useEffect(() => {
    const follow = () => setPlace(placeOfAddress());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  const go: Go = (wanted, quietly = false) => {
    const next = record === undefined ? wanted : within(record, wanted);
    const fragment = fragmentOf(next);
    if (quietly) history.replaceState(null, '', fragment);
    else history.pushState(null, '', fragment);
    setPlace(next);
    if (next.view !== place.view) scrollTo(0, 0);
  };
  return [place, go];
}

function placeOfAddress(): Place {
  const { hash } = location;
  if (record === undefined) return placeOf(hash);
  return hash === '' ? firstPlace(record) : within(record, placeOf(hash));
}

/** The others are below the fleet. */
const TABS: readonly Place[] = [FLEET, HOURS, UNOBSERVED, FALLBACKS, VERSIONS];

interface FrameProps {
  readonly place: Place;
  readonly onSignOut: (() => void) | undefined;
  readonly children: ComponentChildren;
}

function Frame({ place, onSignOut, children }: FrameProps) {
  const here = TABS.some(({ view }) => view === place.view) ? place.view : FLEET.view;
  const home = record === undefined ? FLEET : firstPlace(record);
  return (
    <>
      <header class="frame">
        <a class="brand" href={fragmentOf(home)}>
          <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
            <path class="tone-good" d="M1 1h6v6H1zM9 1h6v6H9zM1 9h6v6H1z" />
            <path class="brand-hole" d="M9.75 9.75h4.5v4.5h-4.5z" />
          </svg>
          plegwatch
        </a>
        {record === undefined ? (
          <nav aria-label="Views">
            {TABS.map((to) => (
              <a
                key={to.view}
                class="tab"
                href={fragmentOf(to)}
                aria-current={to.view === here ? 'page' : undefined}
              >
                {titleOf(to)}
              </a>
            ))}
          </nav>
        ) : (
          <p class="soft">
            recorded at {moment(msOf(record.writtenAt))} UTC by plegwatch {visible(record.version)}
          </p>
        )}
        {onSignOut !== undefined && (
          <button type="button" class="plain" onClick={onSignOut}>
            Forget token
          </button>
        )}
      </header>
      {children}
    </>
  );
}

function View({ place, go }: ViewProps<Place>) {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${titleOf(place)} – plegwatch`;
  }, [place]);
  const subject = subjectOf(place);
  const last = useRef(subject);
  useLayoutEffect(() => {
    // The focused element is gone with the view before. The focus moves before the new view is painted, so that no key is lost.
    if (last.current !== subject) main.current?.focus({ preventScroll: true });
    last.current = subject;
  }, [subject]);
  return (
    <main ref={main} tabIndex={-1}>
      {place.view === 'fleet' && <FleetView place={place} go={go} />}
      {place.view === 'node' && <NodeView key={`${place.cluster}/${place.node}`} place={place} go={go} />}
      {place.view === 'finding' && <FindingView key={place.id} place={place} />}
      {place.view === 'pool' && <PoolView key={subject} place={place} go={go} />}
      {place.view === 'unobserved' && <UnobservedView place={place} go={go} />}
      {place.view === 'fallbacks' && <FallbacksView place={place} go={go} />}
      {place.view === 'hours' && <HoursView place={place} go={go} />}
      {place.view === 'versions' && <VersionsView place={place} go={go} />}
    </main>
  );
}

/** The subject of a view, however it is zoomed or filtered. */
function subjectOf(place: Place): string {
  if (place.view === 'node') return fragmentOf({ ...place, period: DEFAULT_PERIOD, only: '', beside: false });
  if (place.view === 'pool') return fragmentOf({ ...place, period: POOL_PERIOD });
  return place.view === 'finding' ? fragmentOf(place) : place.view;
}

const TITLES = {
  fleet: 'Fleet',
  hours: 'Hours',
  unobserved: 'Not observed',
  fallbacks: 'Fallbacks',
  versions: 'Versions',
};

function titleOf(place: Place): string {
  if (place.view === 'node') return place.node;
  if (place.view === 'finding') return `Finding ${place.id.slice(0, 8)}`;
  if (place.view === 'pool') return poolTitle(place.key);
  return TITLES[place.view];
}
