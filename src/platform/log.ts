/*
 * Logs: JSON lines on standard error, constant messages, the facts in fields.
 */
import { type Logger, pino } from 'pino';
import { printableLines } from './printable.ts';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function createLogger(level: LogLevel, program: string): Logger {
  const stderr = pino.destination({ fd: 2, sync: true });
  return pino(
    {
      level,
      base: { program },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    // JSON escapes some control characters and leaves others.
    { write: (line) => stderr.write(printableLines(line)) },
  );
}
