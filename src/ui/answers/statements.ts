/*
 * The statements of this folder, with the rows that they return: what src/ui/api.ts promises.
 */
import * as v from 'valibot';
import {
  type Field,
  float8,
  int4,
  int4Array,
  int8,
  text,
  textArray,
  timestamptz,
} from '../../store/schema/columns.ts';
import { nodeCondition, readyChange, reportCondition } from '../../store/schema/tables.ts';
import { nodes } from '../../store/schema/views.ts';
import { nullable, rowOf, statement } from '../../store/statement.ts';
import readConditionsSql from './sql/readConditions.sql';
import readFleetSql from './sql/readFleet.sql';
import readMissRatesSql from './sql/readMissRates.sql';
import readReadinessSql from './sql/readReadiness.sql';
import readRelistsSql from './sql/readRelists.sql';
import searchSql from './sql/search.sql';

/** A text that is one of these. */
const word = <W extends string>(...words: readonly W[]): Field<W> => ({
  type: 'text',
  isNullable: false,
  read: (value) => v.parse(v.picklist(words), value),
});

export const readFleet = statement(
  readFleetSql,
  rowOf({
    cluster: nodes.cluster,
    node: nodes.node,
    pool: nullable(text),
    agent: word('Reporting', 'AgentSilent', 'NeverSeen', 'NotReportedYet'),
    mode: nodes.mode,
    modeReason: nodes.mode_reason,
    modeSince: nodes.mode_since,
    streamState: nodes.stream_state,
    streamReason: nodes.stream_reason,
    missed24h: nullable(int4),
    completeness24h: nullable(float8),
    incompleteReason: nullable(reportCondition.reason),
    runtimeName: nodes.runtime_name,
    runtimeVersion: nodes.runtime_version,
    kubeletVersion: nodes.kubelet_version,
    agentVersion: nodes.agent_version,
    lastSeen: nodes.last_seen,
  }),
);

export const readConditions = statement(
  readConditionsSql,
  rowOf({
    at: readyChange.at,
    status: readyChange.status,
    reason: readyChange.reason,
    causes: readyChange.causes,
    message: nullable(nodeCondition.message),
  }),
);

export const readRelists = statement(
  readRelistsSql,
  rowOf({
    at: timestamptz,
    seconds: int4,
    relists: int8,
    errors: int8,
    p50Ms: nullable(float8),
    p99Ms: nullable(float8),
    maxMs: nullable(float8),
    hist: int4Array,
    kubeletRelists: nullable(int8),
    kubeletP99Ms: nullable(float8),
  }),
);

export const readMissRates = statement(
  readMissRatesSql,
  rowOf({
    cluster: text,
    runtimeName: nullable(text),
    runtimeVersion: nullable(text),
    kubeletVersion: nullable(text),
    nodes: int8,
    decided: int8,
    missed: int8,
    perMillion: nullable(float8),
    lowPerMillion: nullable(float8),
    highPerMillion: nullable(float8),
  }),
);

export const readReadiness = statement(
  readReadinessSql,
  rowOf({
    ...{ cluster: text, pool: nullable(text) },
    ...{ safe: int4, unsafe: int4, unknown: int4, reasons: textArray },
  }),
);

export const search = statement(
  searchSql,
  rowOf({
    cluster: text,
    node: text,
    found: word('node', 'pod', 'container', 'finding'),
    text,
    at: nullable(timestamptz),
  }),
);
