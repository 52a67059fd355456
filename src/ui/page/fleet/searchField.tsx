/*
 * Finds a node by its name at once, and asks the server for pods, containers and findings.
 */
import type { SearchAnswer, SearchHit } from '../../api.ts';
import { apiPath } from '../parts/client.ts';
import { usePolled } from '../parts/polling.ts';
import { useSettled } from '../parts/settled.ts';
import { DEFAULT_PERIOD, type FleetPlace, fragmentOf, type Place, type ViewProps } from '../place.ts';
import { msOf, visible } from '../text.ts';

const PAUSE_MS = 300;
const MIN_LENGTH = 3;

interface Props extends ViewProps<FleetPlace> {
  /** The number of clusters of the fleet: where there are several, each hit names its own. */
  readonly clusters: number;
}

export function SearchField({ place, go, clusters }: Props) {
  const text = place.search.trim();
  const settled = useSettled(text, PAUSE_MS);
  const isBegun = Math.min(text.length, settled.length) < MIN_LENGTH || settled.endsWith('/');
  const asked = isBegun ? null : settled;
  const { answer } = usePolled<SearchAnswer>(asked === null ? null : apiPath('search', { q: asked }), null);
  const hits = asked === null ? undefined : answer?.hits.filter(({ found }) => found !== 'node');
  return (
    <div class="search">
      <label for="search">Search</label>
      <input
        id="search"
        type="search"
        placeholder="node, pod, container or finding id"
        autocomplete="off"
        spellcheck={false}
        value={place.search}
        onInput={(event) => go({ ...place, search: event.currentTarget.value }, true)}
      />
      {hits !== undefined && hits.length > 0 && (
        <div class="hits" role="status">
          <p>
            {hits.length} elsewhere{answer?.cut === true ? ', and more: search for more of the name' : ''}
          </p>
          <ul>
            {hits.map((hit) => (
              <li key={`${hit.cluster} ${hit.node} ${hit.found} ${hit.text}`}>
                <a href={fragmentOf(placeOfHit(hit))}>
                  <span class="soft">{hit.found}</span> {visible(hit.text)}{' '}
                  <span class="soft">
                    on {visible(hit.node)}
                    {clusters > 1 && `, cluster ${visible(hit.cluster)}`}
                  </span>
                </a>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function placeOfHit({ cluster, node, found, text, at }: SearchHit): Place {
  if (found === 'finding') return { view: 'finding', id: text, cluster, node };
  const end = at === null ? undefined : msOf(at) + 300_000;
  const period = end === undefined ? DEFAULT_PERIOD : { from: end - 900_000, to: end };
  return { view: 'node', cluster, node, period, only: found === 'node' ? '' : text };
}
