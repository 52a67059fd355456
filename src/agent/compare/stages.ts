/*
 * The stages of one CRI id, each numbered as the CRI numbers the event that announces it. An id goes
 * created -> started -> stopped -> deleted and never back; a restart is a new id.
 */

export const CREATED = 0;
export const STARTED = 1;
export const STOPPED = 2;
export const DELETED = 3;
export type Stage = 0 | 1 | 2 | 3;
export const STAGES: readonly Stage[] = [CREATED, STARTED, STOPPED, DELETED];
export type PerStage<T> = [T, T, T, T];

/** The stage that an event type from the CRI announces; undefined where it is not one of the four. */
export const stageOf = (type: number): Stage | undefined => STAGES.find((stage) => stage === type);
