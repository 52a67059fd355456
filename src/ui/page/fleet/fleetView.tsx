/*
 * Every node of every cluster: which are well, which are not, and of which nobody knows.
 */
import { useMemo } from 'preact/hooks';
import type { FleetAnswer, FleetNode } from '../../api.ts';
import { STATES, usualColouring } from '../colours.ts';
import { Choice } from '../parts/choice.tsx';
import { apiPath } from '../parts/client.ts';
import { AnswerState, EmptyNotice, Heading } from '../parts/notices.tsx';
import { usePolled } from '../parts/polling.ts';
import {
  COLOURINGS,
  type ColouredPlace,
  chosenStates,
  type FleetPlace,
  GROUPINGS,
  type ViewProps,
} from '../place.ts';
import { counted, moment, msOf } from '../text.ts';
import { ChangeSentence } from './changeSentence.tsx';
import { FleetMap } from './fleetMap.tsx';
import { FleetTable } from './fleetTable.tsx';
import { Legend } from './legend.tsx';
import { chosenNodes, groupsOf } from './nodeGroups.ts';
import { placeOfNode } from './nodeLink.ts';
import { SearchField } from './searchField.tsx';
import { Summary } from './summary.tsx';

const POLL_MS = 10_000;
const COLOUR_NAMES = {
  mode: 'PLEG mode',
  misses: 'missed events',
  lists: 'lists',
  completeness: 'completeness',
  stream: 'event stream',
};
const GROUP_NAMES = { cluster: 'cluster', pool: 'pool', version: 'version' };

export function FleetView({ place, go }: ViewProps<FleetPlace>) {
  const polled = usePolled<FleetAnswer>(apiPath('fleet'), POLL_MS);
  const { answer } = polled;
  return (
    <>
      <Heading title="Fleet">
        {answer !== undefined && <p class="soft">as of {moment(msOf(answer.now))} UTC</p>}
      </Heading>
      <AnswerState polled={polled} what="the nodes" />
      {answer?.empty && <EmptyNotice why={answer.empty} />}
      {answer !== undefined && answer.nodes.length > 0 && <Fleet answer={answer} place={place} go={go} />}
    </>
  );
}

function Fleet({ answer, place: asked, go }: ViewProps<FleetPlace> & { readonly answer: FleetAnswer }) {
  const { nodes } = answer;
  const place = useMemo(
    (): ColouredPlace => ({ ...asked, colour: asked.colour ?? usualColouring(nodes) }),
    [nodes, asked],
  );
  const chosen = useMemo(() => chosenNodes(nodes, place), [nodes, place]);
  const groups = useMemo(() => groupsOf(chosen, place.group), [chosen, place.group]);
  const change = (more: Partial<FleetPlace>, quietly = false) => go({ ...asked, ...more }, quietly);
  const open = (node: FleetNode) => go(placeOfNode(node, answer.now, place.colour));
  return (
    <>
      <ChangeSentence />
      <Summary nodes={nodes} place={asked} go={go} />
      <section class="controls" aria-label="What the map shows">
        <SearchField place={asked} go={go} clusters={answer.clusters.length} />
        <Choice
          name="colour"
          legend="Colour by"
          options={COLOURINGS}
          labels={COLOUR_NAMES}
          value={place.colour}
          onChoose={(colour) => change({ colour, state: null })}
        />
        <Choice
          name="group"
          legend="Group by"
          options={GROUPINGS}
          labels={GROUP_NAMES}
          value={place.group}
          onChoose={(group) => change({ group })}
        />
      </section>
      <Legend nodes={nodes} place={place} onState={(state) => change({ state, colour: place.colour })} />
      {answer.leftOut !== null && (
        <p class="soft">{counted(answer.leftOut, 'more node')} of this fleet are not shown.</p>
      )}
      {chosen.length === 0 ? (
        <EmptyNotice why={whyNone(place)} />
      ) : (
        <>
          <FleetMap
            groups={groups}
            cells={nodes.length}
            grouping={place.group}
            colouring={place.colour}
            onOpen={open}
          />
          <FleetTable nodes={chosen} colouring={place.colour} now={answer.now} />
        </>
      )}
    </>
  );
}

function whyNone(place: ColouredPlace): string {
  const { search, colour } = place;
  const named = search.trim() === '' ? '' : ` with “${search.trim()}” in its name`;
  const states = chosenStates(place);
  const labels = STATES[colour].filter(({ key }) => states.includes(key)).map(({ label }) => `“${label}”`);
  const inState = labels.length === 0 ? '' : ` in the state ${labels.join(' or ')}`;
  return `No node${inState}${named}. Clear the filter to see all.`;
}
