/*
 * The controller's rights at the API server: those of its parts. The roles of the chart grant exactly these (test/release/chart.test.ts), and
 * `plegwatch doctor` asks for each of them.
 */
import type { KubeRight } from '../kube/rights.ts';
import { IDENTITY_RIGHTS } from './clusterIdentity.ts';
import { type KeyPlaces, keyRights } from './keys/controllerKeys.ts';
import { reviewRights } from './keys/tokenReview.ts';
import { type LeasePlace, leaseRights } from './leader/election.ts';
import { PUBLISHING_RIGHTS } from './nodeConditions/nodeStatus.ts';
import { EVENT_RIGHTS } from './nodes/eventWriter.ts';
import { NODE_RIGHTS } from './nodes/nodeWatch.ts';
import { NODE_REPORT_RIGHTS } from './reports/nodeReports.ts';
import { POD_RIGHTS } from './statusLag/podPoller.ts';

export interface RightsOptions {
  readonly measuresStatusLag: boolean;
  readonly publishesConditions: boolean;
  /** Absent if agents cannot enrol. */
  readonly keys?: KeyPlaces | undefined;
  /** Absent if this controller always leads. */
  readonly lease?: LeasePlace | undefined;
}

export const controllerRights = ({
  measuresStatusLag,
  publishesConditions,
  keys,
  lease,
}: RightsOptions): readonly KubeRight[] => [
  ...NODE_RIGHTS,
  ...IDENTITY_RIGHTS,
  ...NODE_REPORT_RIGHTS,
  ...EVENT_RIGHTS,
  ...(measuresStatusLag ? POD_RIGHTS : []),
  ...(publishesConditions ? PUBLISHING_RIGHTS : []),
  ...(lease === undefined ? [] : leaseRights(lease)),
  ...(keys === undefined ? [] : [...keyRights(keys), ...reviewRights(keys.configMapNamespace)]),
];
