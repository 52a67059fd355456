/*
 * The settings of `plegwatch audit`.
 */
import { CLUSTER, logLevelFrom, moment } from '../platform/commonSettings.ts';
import { optional, string } from '../platform/settings.ts';
import { DATABASE_SETTINGS } from '../store/settings.ts';

export const AUDIT_SETTINGS = {
  cluster: CLUSTER,
  ...DATABASE_SETTINGS,
  node: optional('name', 'only this node', string),
  from: optional('time', 'only what was found since then', moment),
  to: optional('time', 'only what was found until then', moment),
  logLevel: logLevelFrom('error'),
} as const;
