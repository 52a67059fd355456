/*
 * What `plegwatch export` was asked for.
 */
import type { LongReadStore } from '../../store/store.ts';
import type { Period } from '../period.ts';
import type { ExportedView, ExportFormat } from './views.ts';

export interface ExportCommand extends Period {
  readonly store: LongReadStore;
  readonly view: ExportedView;
  readonly format: ExportFormat;
  readonly dir: string;
  readonly cluster: readonly string[] | undefined;
  /** Called after each file. */
  readonly print: (line: string) => void;
}
