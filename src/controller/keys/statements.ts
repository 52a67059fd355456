/*
 * The statement of this folder, with the row that it returns.
 */
import { int4 } from '../../store/schema/columns.ts';
import { rowOf, statement } from '../../store/statement.ts';
import upsertNodeKeySql from './sql/upsertNodeKey.sql';

export const upsertNodeKey = statement(upsertNodeKeySql, rowOf({ valid_for: int4 }));
