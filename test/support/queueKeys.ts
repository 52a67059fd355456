/*
 * The names of the keys of a queue in Redis.
 */

/** Those that a script of BullMQ reads or writes. */
export const QUEUE_KEYS: readonly string[] = [
  ...[
    'wait',
    'active',
    'delayed',
    'prioritized',
    'paused',
    'marker',
    'stalled',
    'stalled-check',
    'meta',
    'events',
  ],
  ...['id', 'pc', 'limiter', 'completed', 'failed', 'waiting-children', 'repeat'],
];
