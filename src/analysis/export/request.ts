/*
 * What `plegwatch export` was asked for.
 */
import type { LongReadStore } from '../../store/store.ts';
import type { Period } from '../period.ts';
import type { ExportedView, ExportFormat } from './views.ts';

export interface ExportCommand extends Period {
  readonly store: LongReadStore;
  /** Undefined: those that the questions to a lake need. */
  readonly views: readonly ExportedView[] | undefined;
  readonly format: ExportFormat;
  readonly dir: string;
  readonly cluster: readonly string[] | undefined;
  /** Called after each file. */
  readonly print: (line: string) => void;
  /** Called where a view of a lake cannot be exported; the others are. */
  readonly fail: (view: ExportedView, error: unknown) => void;
  /** For tests: how long a run waits for others. */
  readonly lockWaitMs?: number;
}

/** The part of it that is about one view. */
export type ViewExport = Omit<ExportCommand, 'views' | 'fail' | 'lockWaitMs'> & {
  readonly view: ExportedView;
};
