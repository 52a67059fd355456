/*
 * How a statement joins tables that have rows of nodes, judged from its tree. Each must be tied to the others, or to the node that a parameter
 * names, by equality of node_id: then a node's rows answer for the node alone, wherever they are. Views are looked into. CTEs and subqueries that
 * refer to nothing around them stand for themselves.
 */
import type { Client } from 'pg';
import { isList, isNode, nodesOf, numberOf, parseTree, type Tree, type TreeNode } from './queryTrees.ts';

interface Relation {
  readonly name: string;
  /** The place of its column node_id; 0 if it has none. */
  readonly nodeColumn: number;
  /** Whether its rows belong to one node each, and are not looked up by an id of their own. */
  readonly isOfNodes: boolean;
  /** The tree of a view. */
  readonly rule: string | null;
}

export interface JoinCatalog {
  readonly relations: ReadonlyMap<number, Relation>;
  readonly equalities: ReadonlySet<number>;
}

export async function readJoinCatalog(client: Client): Promise<JoinCatalog> {
  const relations = await client.query(
    `SELECT c.oid::int4, c.relname AS name, coalesce(a.attnum, 0)::int4 AS "nodeColumn", r.ev_action::text AS rule,
            a.attnum IS NOT NULL AND c.relkind <> 'v' AND c.relname NOT IN ('node', 'context') AS "isOfNodes"
       FROM pg_class c
       LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'node_id' AND NOT a.attisdropped
       LEFT JOIN pg_rewrite r ON r.ev_class = c.oid AND r.rulename = '_RETURN'
      WHERE c.relnamespace IN ('store'::regnamespace, 'plegwatch'::regnamespace) AND c.relkind IN ('r', 'p', 'v')`,
  );
  const operators = await client.query("SELECT oid::int4 FROM pg_operator WHERE oprname = '='");
  return {
    relations: new Map(relations.rows.map(({ oid, ...relation }) => [oid, relation])),
    equalities: new Set(operators.rows.map(({ oid }) => oid)),
  };
}

/** The other joins of tables of nodes; empty if nothing does. */
export function strayJoins(catalog: JoinCatalog, query: TreeNode): string[] {
  return new JoinCheck(catalog).strays(query);
}

/** A query, and where it stands: its path names its tables apart from those of every other query of the statement. */
interface Scope {
  readonly query: TreeNode;
  readonly path: string;
  readonly outer: Scope | null;
}

const RELATION = '0';
const SUBQUERY = '1';
const JOIN = '2';
/** Stands for every node that a statement names. */
const NAMED = 'named';

class JoinCheck {
  readonly #catalog: JoinCatalog;
  /** The name of each table of nodes, by its path. */
  readonly #tables = new Map<string, string>();
  readonly #equalTo = new Map<string, string>();
  readonly #views = new Map<string, TreeNode>();
  /** The tables that each query which stands for itself joins. */
  readonly #joined: string[][] = [];

  constructor(catalog: JoinCatalog) {
    this.#catalog = catalog;
  }

  strays(query: TreeNode): string[] {
    this.#joined.push(this.#visit({ query, path: 'q', outer: null }));
    return this.#joined
      .filter((paths) => new Set(paths.map((path) => this.#root(path))).size > 1)
      .map((paths) => [...new Set(paths.map((path) => this.#tables.get(path)))].sort().join(', '));
  }

  /** Returns the tables that the query joins, with those of subqueries that refer to it. */
  #visit(scope: Scope): string[] {
    const { query, path } = scope;
    for (const [at, cte] of nodesOf(query.fields['cteList']).entries()) {
      const inner = cte.fields['ctequery'];
      if (isNode(inner))
        this.#joined.push(this.#visit({ query: inner, path: `${path}.with${at}`, outer: null }));
    }
    const { jointree, resultRelation, commandType } = query.fields;
    const own = new Set(tablesOf(jointree));
    const isInsert = commandType === '3';
    if (numberOf(resultRelation) > 0 && !isInsert) own.add(numberOf(resultRelation));
    this.#unite(scope, jointree);
    return [...[...own].flatMap((at) => this.#table(scope, at)), ...this.#inExpressions(scope)];
  }

  #inExpressions(scope: Scope): string[] {
    const others = Object.entries(scope.query.fields).filter(
      ([field]) => !['cteList', 'rtable'].includes(field),
    );
    return others.flatMap(([field, tree]) =>
      sublinksOf(tree).flatMap((link, at) => {
        const query = link.fields['subselect'];
        return isNode(query)
          ? this.#nested({ query, path: `${scope.path}.${field}${at}`, outer: scope })
          : [];
      }),
    );
  }

  #table(scope: Scope, at: number): string[] {
    const entry = nodesOf(scope.query.fields['rtable'])[at - 1];
    const path = `${scope.path}.${at}`;
    const relation = this.#relationOf(entry);
    if (relation?.isOfNodes === true) {
      this.#tables.set(path, relation.name);
      return [path];
    }
    const query = this.#subqueryOf(entry, path);
    return query === null ? [] : this.#nested({ query, path, outer: scope });
  }

  #nested(scope: Scope): string[] {
    const tables = this.#visit(scope);
    // A table joined to the rows of a subquery is tied to its tables by the columns that it returns.
    if (refersOutside(scope.query, 0)) return tables;
    this.#joined.push(tables);
    return [];
  }

  /** Ties what is equal wherever it is required: in WHERE, and in the condition of a join. */
  #unite(scope: Scope, tree: Tree | undefined): void {
    if (isList(tree)) for (const each of tree) this.#unite(scope, each);
    if (!isNode(tree)) return;
    this.#tieEqual(scope, tree);
    const isRequired = tree.node === 'BOOLEXPR' && tree.fields['boolop'] === 'and';
    if (isRequired || tree.node === 'FROMEXPR' || tree.node === 'JOINEXPR')
      for (const each of Object.values(tree.fields)) this.#unite(scope, each);
  }

  #tieEqual(scope: Scope, { node, fields }: TreeNode): void {
    const isEquality = this.#catalog.equalities.has(numberOf(fields['opno']));
    if (!isEquality || (node !== 'OPEXPR' && node !== 'SCALARARRAYOPEXPR')) return;
    const [left, right] = nodesOf(fields['args']).map((side) => this.#column(scope, side));
    // = ANY of an array names nodes as well.
    const other = node === 'OPEXPR' ? right : NAMED;
    if (left !== undefined && other !== undefined) this.#tie(left, other);
  }

  /** A name of a column that is the same wherever it is used; that of a table of nodes is its path. */
  #column(scope: Scope, tree: TreeNode): string | undefined {
    if (tree.node === 'PARAM' || tree.node === 'CONST' || tree.node === 'SUBLINK') return NAMED;
    const { arg, varno, varattno, varlevelsup } = tree.fields;
    if (tree.node === 'RELABELTYPE' && isNode(arg)) return this.#column(scope, arg);
    if (tree.node !== 'VAR') return undefined;
    let of: Scope | null = scope;
    for (let up = numberOf(varlevelsup); up > 0 && of !== null; up -= 1) of = of.outer;
    return of === null ? undefined : this.#columnOf(of, numberOf(varno), numberOf(varattno));
  }

  #columnOf(scope: Scope, at: number, column: number): string | undefined {
    const entry = nodesOf(scope.query.fields['rtable'])[at - 1];
    const path = `${scope.path}.${at}`;
    if (entry?.fields['rtekind'] === JOIN) {
      const alias = nodesOf(entry.fields['joinaliasvars'])[column - 1];
      return alias === undefined ? undefined : this.#column(scope, alias);
    }
    const query = this.#subqueryOf(entry, path);
    if (query !== null && !isNode(query.fields['setOperations'])) {
      const value = nodesOf(query.fields['targetList'])[column - 1]?.fields['expr'];
      return isNode(value) ? this.#column({ query, path, outer: scope }, value) : undefined;
    }
    const relation = this.#relationOf(entry);
    return relation?.isOfNodes === true && relation.nodeColumn === column ? path : `${path}:${column}`;
  }

  #relationOf(entry: TreeNode | undefined): Relation | undefined {
    if (entry?.fields['rtekind'] !== RELATION) return undefined;
    return this.#catalog.relations.get(numberOf(entry.fields['relid']));
  }

  #subqueryOf(entry: TreeNode | undefined, path: string): TreeNode | null {
    const rule = this.#relationOf(entry)?.rule ?? null;
    if (rule !== null) return this.#view(path, rule);
    const subquery = entry?.fields['rtekind'] === SUBQUERY ? entry.fields['subquery'] : null;
    return isNode(subquery) ? subquery : null;
  }

  #view(path: string, rule: string): TreeNode {
    const query = this.#views.get(path) ?? nodesOf(parseTree(rule))[0];
    if (query === undefined) throw new Error('a view has no query');
    this.#views.set(path, query);
    return query;
  }

  #root(key: string): string {
    const next = this.#equalTo.get(key);
    return next === undefined ? key : this.#root(next);
  }

  #tie(one: string, other: string): void {
    const [from, to] = [this.#root(one), this.#root(other)];
    if (from !== to) this.#equalTo.set(from, to);
  }
}

/** The entries of the range table that a FROM names. */
function tablesOf(tree: Tree | undefined): number[] {
  if (isList(tree)) return tree.flatMap(tablesOf);
  if (!isNode(tree)) return [];
  if (tree.node === 'RANGETBLREF') return [numberOf(tree.fields['rtindex'])];
  if (tree.node !== 'FROMEXPR' && tree.node !== 'JOINEXPR') return [];
  return [tree.fields['fromlist'], tree.fields['larg'], tree.fields['rarg']].flatMap(tablesOf);
}

function sublinksOf(tree: Tree | undefined): TreeNode[] {
  if (isList(tree)) return tree.flatMap(sublinksOf);
  if (!isNode(tree) || tree.node === 'QUERY') return [];
  return tree.node === 'SUBLINK' ? [tree] : Object.values(tree.fields).flatMap(sublinksOf);
}

function refersOutside(tree: Tree | undefined, depth: number): boolean {
  if (isList(tree)) return tree.some((each) => refersOutside(each, depth));
  if (!isNode(tree)) return false;
  if (tree.node === 'VAR') return depth > 0 && numberOf(tree.fields['varlevelsup']) >= depth;
  const inner = tree.node === 'QUERY' ? depth + 1 : depth;
  return Object.values(tree.fields).some((each) => refersOutside(each, inner));
}
