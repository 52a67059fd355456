/*
 * Access by a token of the cluster's API server: a TokenReview says whose it is, a SubjectAccessReview whether that user may.
 */
import type { IncomingMessage } from 'node:http';
import type { KubeClient } from '../../kube/client.ts';
import { RequestError } from '../requestError.ts';
import type { Access } from './access.ts';
import { type AccessReviewOptions, accessReviews, type Refusal, reviewUser } from './accessReviews.ts';

const MAX_TOKEN = 12 * 1024;
const CREATE_TOKEN =
  'Paste a token of somebody who may get plegreports: kubectl create token ACCOUNT -n NAMESPACE.';

type Options = AccessReviewOptions<Pick<KubeClient, 'reviewToken' | 'mayUser'>>;

export function tokenAccess({ kube, ...options }: Options): Access {
  const may = accessReviews(options);

  async function review(token: string): Promise<Refusal> {
    const { authenticated, error, ...user } = await kube.reviewToken(token, []);
    if (authenticated) return reviewUser(kube, user);
    const why = error === '' ? '' : ` It says: ${error}.`;
    return new RequestError(
      'TOKEN_REFUSED',
      `The API server does not accept the token, or it has expired.${why}`,
      CREATE_TOKEN,
    );
  }

  return {
    async check(request) {
      const token = bearerOf(request);
      await may(token, () => review(token));
    },
  };
}

function bearerOf({ headers }: IncomingMessage): string {
  const [, token = ''] = /^Bearer +([\w.~+/=-]+)$/i.exec(headers.authorization ?? '') ?? [];
  if (token !== '' && token.length <= MAX_TOKEN) return token;
  throw new RequestError('TOKEN_REQUIRED', 'This page needs a token of the API server.', CREATE_TOKEN);
}
