/*
 * A report as it is, or would be, in Kubernetes.
 */
import type { ReportCondition, ReportStatus } from './status.ts';

export interface NamedReport {
  readonly cluster: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly status: ReportStatus;
}

export const conditionOf = ({ status }: NamedReport, type: string): ReportCondition | undefined =>
  status.conditions.find((condition) => condition.type === type);
