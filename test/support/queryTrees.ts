/*
 * Statements as Postgres has analysed them: names resolved to relations, functions and operators. Nothing is executed: a statement becomes the
 * body of a function for a moment, of which the catalog keeps the tree as text. Its grammar: {NODE :field value …}, (list), <> for null, words.
 */
import type { Client } from 'pg';

export type Tree = TreeNode | readonly Tree[] | string | null;

export interface TreeNode {
  readonly node: string;
  readonly fields: Readonly<Record<string, Tree>>;
}

export const isNode = (tree: Tree | undefined): tree is TreeNode =>
  typeof tree === 'object' && tree !== null && 'node' in tree;
export const isList = (tree: Tree | undefined): tree is readonly Tree[] => Array.isArray(tree);
/** The nodes of a list; none of what is not a list. */
export const nodesOf = (tree: Tree | undefined): TreeNode[] => (isList(tree) ? tree.filter(isNode) : []);
export const numberOf = (tree: Tree | undefined): number => (typeof tree === 'string' ? Number(tree) : 0);

/** A token ends at white space or a bracket; a backslash escapes the next character. */
const TOKEN = /[(){}]|<>|(?:\\.|[^\s(){}\\])+/gs;

export function parseTree(text: string): Tree {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const values = (end: string): Tree[] => {
    const found: Tree[] = [];
    while (tokens[at] !== end) found.push(value());
    at += 1;
    return found;
  };
  const value = (): Tree => {
    const token = tokens[at++];
    if (token === undefined) throw new Error('the tree of a statement ends early');
    if (token === '(') return values(')');
    if (token === '{') return node();
    return token === '<>' ? null : token;
  };
  const node = (): TreeNode => {
    const name = tokens[at++] ?? '';
    const fields: Record<string, Tree> = {};
    while (tokens[at] !== '}') {
      const field = (tokens[at++] ?? '').slice(1);
      // A field has one value, except for constants, whose bytes are many words, and for lists of several kinds.
      const first = value();
      const rest: Tree[] = [];
      while (tokens[at] !== '}' && !/^:[a-z]/i.test(tokens[at] ?? '')) rest.push(value());
      fields[field] = rest.length === 0 ? first : [first, ...rest];
    }
    at += 1;
    return { node: name, fields };
  };
  return value();
}

/** The queries of a text of one or more statements. */
export async function treesOf(client: Client, text: string): Promise<TreeNode[]> {
  const trees: TreeNode[] = [];
  for (const statement of text.split(/;\s*$/m).filter((part) => part.replace(/--.*$/gm, '').trim() !== '')) {
    await client.query(`PREPARE analysed AS ${statement}`);
    const { rows } = await client.query<{ types: string[] }>(
      "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'analysed'",
    );
    await client.query('DEALLOCATE analysed');
    await client.query(
      `CREATE OR REPLACE FUNCTION pg_temp.analysed(${rows[0]?.types.join(', ')}) RETURNS void BEGIN ATOMIC ${statement}; END`,
    );
    const stored = await client.query<{ body: string; signature: string }>(
      `SELECT prosqlbody::text AS body, oid::regprocedure::text AS signature FROM pg_proc
        WHERE proname = 'analysed' AND pronamespace = pg_my_temp_schema()`,
    );
    await client.query(`DROP FUNCTION ${stored.rows[0]?.signature}`);
    trees.push(...queriesIn(parseTree(stored.rows[0]?.body ?? '')));
  }
  return trees;
}

function queriesIn(tree: Tree): TreeNode[] {
  if (isNode(tree)) return tree.node === 'QUERY' ? [tree] : [];
  return isList(tree) ? tree.flatMap(queriesIn) : [];
}
