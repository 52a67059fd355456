/*
 * The status of a PLEGReport, as defined by crds/plegreports.plegwatch.dev.yaml. Times are RFC 3339 in UTC, to the second.
 */

export const REPORT_API = { apiVersion: 'plegwatch.dev/v1alpha1', kind: 'PLEGReport' } as const;

export interface ReportCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

export interface ReportedMiss {
  readonly findingID: string;
  readonly at: string;
  readonly eventType?: string;
  readonly namespace?: string;
  readonly pod?: string;
  readonly container?: string;
  readonly cause?: string;
  readonly statusLagMilliseconds?: number;
}

export interface ReportedModeChange {
  readonly at: string;
  readonly from: string;
  readonly to: string;
  readonly reason?: string;
}

export interface ReportStatus {
  readonly observedAt: string;
  readonly completeThrough?: string;
  readonly agent: { readonly version?: string; readonly epoch?: string; readonly lastSeen?: string };
  readonly runtime: { readonly name?: string; readonly version?: string };
  readonly kubelet: {
    readonly version?: string;
    readonly identity?: string;
    readonly model?: string;
    readonly streamErrors?: number;
    readonly relistPeriodMilliseconds?: number;
  };
  readonly mode: string;
  readonly modeSince?: string;
  readonly stream?: {
    readonly state: string;
    readonly since?: string;
    readonly reason?: string;
    readonly lastError?: string;
  };
  readonly relist?: {
    readonly p50Milliseconds?: number;
    readonly p99Milliseconds?: number;
    readonly errors: number;
  };
  readonly observed24h: {
    readonly expected: number;
    readonly matched: number;
    readonly unobservable: number;
    readonly coveredSeconds: number;
  };
  readonly missed?: {
    readonly total: number;
    readonly last24h: number;
    readonly resolved24h: number;
    readonly lastAt?: string;
  };
  readonly findings24h: readonly { readonly kind: string; readonly count: number }[];
  readonly missedEvents: readonly ReportedMiss[];
  readonly modeHistory: readonly ReportedModeChange[];
  readonly conditions: readonly ReportCondition[];
}
