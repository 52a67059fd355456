/*
 * Who may `get plegreports` in this cluster, by a token of its API server: a TokenReview says whose it is, a SubjectAccessReview whether
 * that user may. Answers are remembered for a short time, by a digest of the token; the token itself is kept nowhere.
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
  readonly log: ThrottledLog;
  readonly now?: () => Mono;
}

const MAX_TOKEN = 12 * 1024;
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
  readonly answer: Promise<Refusal>;
  /** Null until the answer is there. */
  until: Mono | null;
}

export function tokenAccess({ kube, log, now = monoNow }: TokenAccessOptions): Access {
  const remembered = new Map<string, Remembered>();
  const bucket = new TokenBucket(REVIEWS);

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

  function ask(digest: string, token: string): Promise<Refusal> {
    if (!bucket.tryTake(now())) {
      throw new RequestError('BUSY', 'Too many tokens are being checked at once.', 'Try again in a second.');
    }
    const answer = review(token);
    const entry: Remembered = { answer, until: null };
    remembered.set(digest, entry);
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
    answer.then(
      (refusal) => {
        entry.until = shift(now(), refusal === null ? ALLOWED_FOR : REFUSED_FOR);
      },
      () => remembered.get(digest) === entry && remembered.delete(digest),
    );
    return answer;
  }

  return {
    async check(request) {
      const token = bearerOf(request);
      const digest = createHash('sha256').update(token).digest('base64');
      const known = remembered.get(digest);
      const isFresh = known !== undefined && (known.until === null || now() < known.until);
      if (!isFresh) remembered.delete(digest);
      const refusal = await (isFresh ? known.answer : ask(digest, token)).catch((error: unknown) => {
        if (error instanceof RequestError) throw error;
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
