/*
 * The settings of the doctor: all of agent and controller. None is required, and none has a default: what is set is checked. So it runs without
 * arguments in the pod of either, whose environment has them.
 */
import { AGENT_SETTINGS } from '../agent/config.ts';
import { CONTROLLER_SETTINGS } from '../controller/config.ts';
import { type ConfigOf, oneOf, onlyIfSet, withDefault, withShort } from '../platform/settings.ts';

export const DOCTOR_OUTPUT = withShort(
  'o',
  withDefault('format', 'table', 'table or json', oneOf('table', 'json')),
);

export const DOCTOR_SETTINGS = {
  ...onlyIfSet(AGENT_SETTINGS),
  ...onlyIfSet(CONTROLLER_SETTINGS),
  output: DOCTOR_OUTPUT,
};

export type DoctorConfig = ConfigOf<typeof DOCTOR_SETTINGS>;

/** As a controller has, and an agent has not. */
export const hasDatabase = ({ databaseUrl, databaseSecretDir }: DoctorConfig): boolean =>
  databaseUrl !== undefined || databaseSecretDir !== undefined;
