/*
 * A log that a flood of one message cannot fill. A hostile runtime, or whoever can add jobs to a queue, can cause a message as often
 * as it likes.
 *
 * Messages are limited per kind: the message with the `reason`, `cause` or `call` in its fields. When a minute has passed, the next
 * line of a kind has in `suppressed` how many before it were left out. Metrics count all of them. Agents allow one line a minute, ingest five.
 */
import { between, type Mono, millis } from '../protocol/units.ts';
import { monoNow } from './clock.ts';

const WINDOW = millis(60_000);
const LINES_PER_WINDOW = 5;
/** More kinds than plegwatch logs; it bounds the memory, whatever the fields hold. */
const MAX_KINDS = 256;

type Write = (fields: object, message: string) => void;

interface LogTarget {
  readonly warn: Write;
  readonly error: Write;
}

interface MessageKind {
  readonly windowStart: Mono;
  readonly lines: number;
  readonly suppressed: number;
  /** Writes the last line that was suppressed. */
  readonly writeLast: (() => void) | null;
}

export interface ThrottledLogOptions {
  readonly linesPerMinute?: number;
  readonly now?: () => Mono;
}

export class ThrottledLog {
  readonly #log: LogTarget;
  readonly #limit: number;
  readonly #now: () => Mono;
  readonly #kinds = new Map<string, MessageKind>();

  constructor(log: LogTarget, options: ThrottledLogOptions = {}) {
    this.#log = log;
    this.#limit = options.linesPerMinute ?? LINES_PER_WINDOW;
    this.#now = options.now ?? monoNow;
  }

  /** `count`: how many things the line is about, which is what `suppressed` adds up. */
  warn(fields: object, message: string, count = 1): void {
    this.#take('warn', fields, message, count);
  }

  error(fields: object, message: string, count = 1): void {
    this.#take('error', fields, message, count);
  }

  /** Writes the last suppressed line of every kind whose minute has passed. */
  flushDue(): void {
    for (const [key, kind] of this.#kinds) if (!this.#isOpen(kind)) this.#flush(key, kind);
  }

  flush(): void {
    for (const [key, kind] of this.#kinds) this.#flush(key, kind);
  }

  #take(level: 'warn' | 'error', fields: object, message: string, count: number): void {
    const key = keyOf(fields, message);
    const kind = this.#kinds.get(key);
    if (kind !== undefined && this.#isOpen(kind)) {
      if (kind.lines < this.#limit) {
        this.#kinds.set(key, { ...kind, lines: kind.lines + 1 });
        this.#log[level](fields, message);
      } else {
        const { suppressed } = kind;
        const writeLast = () => this.#write(level, fields, message, suppressed);
        this.#kinds.set(key, { ...kind, suppressed: suppressed + count, writeLast });
      }
      return;
    }
    if (kind === undefined && this.#kinds.size >= MAX_KINDS) this.#kinds.clear();
    this.#kinds.set(key, { windowStart: this.#now(), lines: 1, suppressed: 0, writeLast: null });
    this.#write(level, fields, message, kind?.suppressed ?? 0);
  }

  #isOpen(kind: MessageKind): boolean {
    return between(kind.windowStart, this.#now()) < WINDOW;
  }

  #flush(key: string, kind: MessageKind): void {
    if (kind.writeLast === null) return;
    kind.writeLast();
    this.#kinds.set(key, { windowStart: this.#now(), lines: 1, suppressed: 0, writeLast: null });
  }

  #write(level: 'warn' | 'error', fields: object, message: string, suppressed: number): void {
    this.#log[level](suppressed === 0 ? fields : { ...fields, suppressed }, message);
  }
}

function keyOf(fields: object, message: string): string {
  const label: unknown =
    Reflect.get(fields, 'reason') ?? Reflect.get(fields, 'cause') ?? Reflect.get(fields, 'call') ?? '';
  return `${message} ${String(label)}`;
}
