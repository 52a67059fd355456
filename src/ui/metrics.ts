/*
 * The metrics of `plegwatch ui`.
 */
import { Histogram } from 'prom-client';
import { MetricSet } from '../platform/metricSet.ts';

export class UiMetrics extends MetricSet {
  readonly requests = this.counter(
    'ui_requests_total',
    'Requests to the page, by the class of their status.',
    {
      status: ['2xx', '3xx', '4xx', '5xx'],
    },
  );
  readonly requestSeconds = new Histogram({
    name: 'plegwatch_ui_request_duration_seconds',
    help: 'Time from a request for data to its answer.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
    registers: [this.registry],
  });
}
