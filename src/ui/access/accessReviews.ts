/*
 * Whether somebody may `get plegreports` in this cluster, asked of its API server. Answers are remembered for a short time, by a digest of what
 * names the user; a token itself is kept nowhere.
 *
 * Earlier readers are asked about apart from strangers: whoever guesses keeps no reader out. Somebody new may have to try again
 * while others guess, as the page does by itself: before the API server has answered, nothing tells a new reader from a guess.
 */
import { createHash } from 'node:crypto';
import type { KubeClient, KubeUser } from '../../kube/client.ts';
import { PLEG_REPORTS } from '../../kube/object.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import { type Mono, millis } from '../../protocol/units.ts';
import { remembered } from '../remembered.ts';
import { RequestError } from '../requestError.ts';

export interface AccessReviewOptions<Kube> {
  readonly kube: Kube;
  readonly log: Pick<ThrottledLog, 'warn'>;
  readonly now?: () => Mono;
}

/** Null: the user may read. */
export type Refusal = RequestError | null;

/** Resolves if `who` may read, of whom `review` asks the API server unless the answer is known. Throws RequestError. */
type AccessReviews = (who: string, review: () => Promise<Refusal>) => Promise<void>;

/** The maximum of each kind. */
const MAX_REMEMBERED = 1_000;
/** A right that is taken back, or a token that expires, is noticed after this time. */
const ALLOWED_FOR = millis(60_000);
const REFUSED_FOR = millis(10_000);
/** Reviews that are not remembered: guessing must not load the API server. */
const REVIEWS = { capacity: 50, interval: perSecond(10) };

const READ_REPORTS = { verb: 'get', resource: PLEG_REPORTS };

export function accessReviews({
  log,
  now = monoNow,
}: Omit<AccessReviewOptions<never>, 'kube'>): AccessReviews {
  const refusals = remembered<Refusal>({
    keptFor: (refusal) => (refusal === null ? ALLOWED_FOR : REFUSED_FOR),
    max: MAX_REMEMBERED,
    kindOf: (refusal) => (refusal === null ? 'allowed' : 'refused'),
    now,
  });
  const ofReaders = new TokenBucket(REVIEWS);
  const ofStrangers = new TokenBucket(REVIEWS);
  return async (who, review) => {
    const digest = createHash('sha256').update(who).digest('base64');
    const refusal = await refusals.ask(digest, () => {
      const bucket = refusals.last(digest) === null ? ofReaders : ofStrangers;
      if (bucket.tryTake(now())) return review().catch(unknown);
      throw new RequestError(
        'BUSY',
        'The API server is being asked about too many users at once.',
        'Try again in a second.',
      );
    });
    if (refusal !== null) throw refusal;
  };

  function unknown(error: unknown): never {
    log.warn({ error: messageOf(error) }, 'the API server could not be asked who may read');
    throw new RequestError(
      'ACCESS_UNKNOWN',
      'The API server could not be asked who may read.',
      'Try again; the log of plegwatch ui says what is wrong.',
      { cause: error },
    );
  }
}

export async function reviewUser(kube: Pick<KubeClient, 'mayUser'>, user: KubeUser): Promise<Refusal> {
  if (await kube.mayUser(user, READ_REPORTS)) return null;
  return new RequestError(
    'FORBIDDEN',
    `${user.username} may not get plegreports.plegwatch.dev in this cluster.`,
    'Ask for a ClusterRole with the verb get on plegreports, such as view, which the chart extends.',
  );
}
