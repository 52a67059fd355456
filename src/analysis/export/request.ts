/*
 * What `plegwatch export` was asked for.
 */
import type { DatabaseSettings } from '../../store/databaseAccess.ts';
import type { Store } from '../../store/store.ts';
import type { Period } from '../period.ts';
import type { ExportedView, ExportFormat } from './views.ts';

export interface ExportCommand extends DatabaseSettings, Period {
  readonly store: Store;
  readonly view: ExportedView;
  readonly format: ExportFormat;
  readonly dir: string;
  readonly cluster: readonly string[] | undefined;
  /** Called after each file. */
  readonly print: (line: string) => void;
}
