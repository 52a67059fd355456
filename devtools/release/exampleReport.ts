/*
 * A report that Artifact Hub shows. Its type is the one that the controller writes.
 */
import { REPORT_API, type ReportStatus } from '../../src/controller/reports/status.ts';

const AT = '2026-11-02T09:14:07Z';

const STATUS: ReportStatus = {
  observedAt: AT,
  agent: {},
  runtime: { name: 'containerd', version: 'v2.1.4' },
  kubelet: { version: 'v1.37.0', model: 'EventedHint' },
  mode: 'EventedHint',
  stream: { state: 'Active' },
  observed24h: { expected: 1204, matched: 1203, unobservable: 0, coveredSeconds: 86_400 },
  missed: { total: 1, last24h: 1, resolved24h: 0, lastAt: AT },
  findings24h: [{ kind: 'missed', count: 1 }],
  missedEvents: [
    {
      findingID: '0d5f6f3e-7c0b-4f51-9a57-2f6e0c1b7d11',
      at: AT,
      eventType: 'STOPPED',
      namespace: 'shop',
      pod: 'checkout-6d9f7c5b4-x2lqp',
      container: 'checkout',
      statusLagMilliseconds: 61_000,
    },
  ],
  modeHistory: [],
  conditions: [
    {
      type: 'EvidenceComplete',
      status: 'True',
      lastTransitionTime: '2026-11-01T09:14:07Z',
      reason: 'Covered',
      message:
        'At most 86.4 s of the last 24 hours, counted from when the node was first seen, were not covered.',
    },
  ],
};

export const EXAMPLE = { ...REPORT_API, metadata: { name: 'worker-1' }, status: STATUS };
