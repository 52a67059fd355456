/*
 * The statements of this folder, with the rows that they return.
 */
import { int4, textArray } from '../../store/schema/columns.ts';
import { cluster } from '../../store/schema/tables.ts';
import { type RowOf, rowOf, statement } from '../../store/statement.ts';
import readSignaturesSql from './sql/readSignatures.sql';
import upsertNodeKeySql from './sql/upsertNodeKey.sql';

export const upsertNodeKey = statement(upsertNodeKeySql, rowOf({ valid_for: int4 }));

export const readSignatures = statement(
  readSignaturesSql,
  rowOf({
    required_since: cluster.signatures_required_since,
    ...{ agents: int4, without_key: int4, holding_back: int4, names: textArray },
  }),
);
export type SignatureState = RowOf<typeof readSignatures>;
