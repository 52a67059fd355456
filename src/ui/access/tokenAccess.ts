/*
 * Who may `get plegreports` in this cluster, by a token of its API server: a TokenReview says whose it is, a SubjectAccessReview whether
 * that user may. Answers are remembered for a short time, by a digest of the token; the token itself is kept nowhere.
 *
 * Who could read before is asked about apart from strangers: whoever guesses tokens keeps no reader out.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { KubeClient } from '../../controller/kube/client.ts';
import { PLEG_REPORTS } from '../../controller/kube/object.ts';
import { monoNow } from '../../platform/clock.ts';
import { messageOf } from '../../platform/errors.ts';
import type { ThrottledLog } from '../../platform/throttledLog.ts';
import { perSecond, TokenBucket } from '../../platform/tokenBucket.ts';
import { type Mono, millis, shift } from '../../protocol/units.ts';
import { RequestError } from '../requestError.ts';
import type { Access } from './access.ts';

export interface TokenAccessOptions {
  readonly kube: Pick<KubeClient, 'reviewToken' | 'mayUser'>;
  readonly log: Pick<ThrottledLog, 'warn'>;
  readonly now?: () => Mono;
}

const MAX_TOKEN = 12 * 1024;
/** Of each kind. */
const MAX_REMEMBERED = 1_000;
/** A right that is taken back, or a token that expires, is noticed after this time. */
const ALLOWED_FOR = millis(60_000);
const REFUSED_FOR = millis(10_000);
/** Reviews of tokens that are not remembered: guessing must not load the API server. */
const REVIEWS = { capacity: 50, interval: perSecond(10) };

const READ_REPORTS = { verb: 'get', resource: PLEG_REPORTS };
const CREATE_TOKEN =
  'Paste a token of somebody who may get plegreports: kubectl create token ACCOUNT -n NAMESPACE.';

/** Null: the user may read. */
type Refusal = RequestError | null;

interface Remembered {
  readonly refusal: Refusal;
  readonly until: Mono;
}

export function tokenAccess({ kube, log, now = monoNow }: TokenAccessOptions): Access {
  const allowed = new Map<string, Remembered>();
  const refused = new Map<string, Remembered>();
  const asked = new Map<string, Promise<Refusal>>();
  const ofReaders = new TokenBucket(REVIEWS);
  const ofStrangers = new TokenBucket(REVIEWS);

  async function review(token: string): Promise<Refusal> {
    const { authenticated, error, ...user } = await kube.reviewToken(token, []);
    if (!authenticated) {
      const why = error === '' ? '' : ` It says: ${error}.`;
      return new RequestError(
        'TOKEN_REFUSED',
        `The API server does not accept the token, or it has expired.${why}`,
        CREATE_TOKEN,
      );
    }
    if (await kube.mayUser(user, READ_REPORTS)) return null;
    return new RequestError(
      'FORBIDDEN',
      `${user.username} may not get plegreports.plegwatch.dev in this cluster.`,
      'Ask for a ClusterRole with the verb get on plegreports, such as view, which the chart extends.',
    );
  }

  async function ask(digest: string, token: string): Promise<Refusal> {
    // The API server may have answered as things were when it was asked.
    const since = now();
    const refusal = await review(token);
    allowed.delete(digest);
    refused.delete(digest);
    const kept = refusal === null ? allowed : refused;
    kept.set(digest, { refusal, until: shift(since, refusal === null ? ALLOWED_FOR : REFUSED_FOR) });
    const [oldest] = kept.keys();
    if (kept.size > MAX_REMEMBERED && oldest !== undefined) kept.delete(oldest);
    return refusal;
  }

  function refusalOf(digest: string, token: string): Promise<Refusal> {
    const known = asked.get(digest);
    if (known !== undefined) return known;
    const bucket = allowed.has(digest) ? ofReaders : ofStrangers;
    if (!bucket.tryTake(now())) {
      throw new RequestError('BUSY', 'Too many tokens are being checked at once.', 'Try again in a second.');
    }
    const answer = ask(digest, token).finally(() => asked.delete(digest));
    asked.set(digest, answer);
    return answer;
  }

  return {
    async check(request) {
      const token = bearerOf(request);
      const digest = createHash('sha256').update(token).digest('base64');
      const known = allowed.get(digest) ?? refused.get(digest);
      if (known !== undefined && now() < known.until) {
        if (known.refusal !== null) throw known.refusal;
        return;
      }
      const refusal = await refusalOf(digest, token).catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'the API server could not be asked who may read');
        throw new RequestError(
          'ACCESS_UNKNOWN',
          'The API server could not be asked whether this token may read.',
          'Try again; the log of plegwatch ui says what is wrong.',
          { cause: error },
        );
      });
      if (refusal !== null) throw refusal;
    },
  };
}

function bearerOf({ headers }: IncomingMessage): string {
  const [, token = ''] = /^Bearer +([\w.~+/=-]+)$/i.exec(headers.authorization ?? '') ?? [];
  if (token !== '' && token.length <= MAX_TOKEN) return token;
  throw new RequestError('TOKEN_REQUIRED', 'This page needs a token of the API server.', CREATE_TOKEN);
}
