/*
 * What became of an Event on a Node: the results of `plegwatch_node_events_total`.
 */
export const EVENT_RESULTS = ['written', 'suppressed', 'refused'] as const;

export type EventResult = (typeof EVENT_RESULTS)[number];
