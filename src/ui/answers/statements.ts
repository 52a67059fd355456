/*
 * The statements of this folder, with the rows that they return: what src/ui/api.ts promises.
 */
import * as types from '../../store/schema/columns.ts';
import { cluster, nodeCondition, readyChange, reportCondition } from '../../store/schema/tables.ts';
import { findingDetail, nodeDetail, nodes } from '../../store/schema/views.ts';
import { nullable, rowOf, statement, word } from '../../store/statement.ts';
import { AGENT_COLUMNS } from './agentState.ts';
import readConditionsSql from './sql/readConditions.sql';
import readFallbacksSql from './sql/readFallbacks.sql';
import readFleetSql from './sql/readFleet.sql';
import readLagsSql from './sql/readLags.sql';
import readMissRatesSql from './sql/readMissRates.sql';
import readObservedDaysSql from './sql/readObservedDays.sql';
import readPoolClockSql from './sql/readPoolClock.sql';
import readPoolNodesSql from './sql/readPoolNodes.sql';
import readPoolRelistsSql from './sql/readPoolRelists.sql';
import readRelistsSql from './sql/readRelists.sql';

const { bool, date, float8, int4, int4Array, int8, text, timestamptz } = types;

export const readFleet = statement(
  readFleetSql,
  rowOf({
    ...{ cluster: nodes.cluster, node: nodes.node, pool: nodeDetail.pool, ...AGENT_COLUMNS },
    ...{ mode: nodes.mode, modeReason: nodes.mode_reason, modeSince: nodes.mode_since },
    ...{ streamState: nodes.stream_state, streamReason: nodes.stream_reason },
    ...{ missed24h: nullable(int4), completeness24h: nullable(float8) },
    incompleteReason: nullable(reportCondition.reason),
    // Verdict on a list that hangs, as in a report.
    ...{ verdict: nullable(text), pod_namespace: nullable(text), pod_name: nullable(text) },
    ...{ container_name: nullable(text), container_id: nullable(text) },
    ...{ runtimeName: nodes.runtime_name, runtimeVersion: nodes.runtime_version },
    ...{ kubeletVersion: nodes.kubelet_version, agentVersion: nodes.agent_version },
    lastSeen: nodes.last_seen,
  }),
);

export const readConditions = statement(
  readConditionsSql,
  rowOf({
    ...{ at: readyChange.at, status: readyChange.status, reason: readyChange.reason },
    ...{ causes: readyChange.causes, message: nullable(nodeCondition.message) },
  }),
);

export const readRelists = statement(
  readRelistsSql,
  rowOf({
    ...{ at: timestamptz, seconds: int4, relists: float8, errors: float8, hist: int4Array },
    ...{ p50Ms: nullable(float8), p99Ms: nullable(float8), maxMs: nullable(float8) },
    ...{ kubeletRelists: nullable(float8), kubeletP99Ms: nullable(float8) },
    ...{ cpuSome: nullable(float8), ioSome: nullable(float8), ioFull: nullable(float8) },
    ...{ memorySome: nullable(float8), memoryFull: nullable(float8) },
  }),
);

export const readLags = statement(
  readLagsSql,
  rowOf({
    ...{ findingId: nullable(findingDetail.finding_id), kind: nullable(findingDetail.kind) },
    ...{ eventType: text, at: timestamptz },
    ...{ id: nullable(text), podUid: findingDetail.pod_uid, podNamespace: findingDetail.pod_namespace },
    ...{ podName: findingDetail.pod_name, name: findingDetail.container_name },
    ...{ kubeletKnew: findingDetail.kubelet_knew, kubeletWhy: findingDetail.kubelet_why },
    ...{ kubeletAtLeastMs: nullable(float8), kubeletAtMostMs: nullable(float8) },
    ...{ lagMinMs: nullable(float8), lagMaxMs: nullable(float8), lagReason: nullable(text), isRead: bool },
  }),
);

export const readMissRates = statement(
  readMissRatesSql,
  rowOf({
    ...{ cluster: text, runtimeName: nullable(text), runtimeVersion: nullable(text) },
    ...{ kubeletVersion: nullable(text), nodes: int8, decided: float8, missed: float8 },
    ...{ perMillion: nullable(float8), lowPerMillion: nullable(float8), highPerMillion: nullable(float8) },
  }),
);

export const readFallbacks = statement(
  readFallbacksSql,
  rowOf({ cluster: cluster.name, day: date, fallbacks: int4, nodes: int4 }),
);

export const readPoolClock = statement(readPoolClockSql, rowOf({ now: timestamptz, hasMinutes: bool }));

export const readPoolNodes = statement(
  readPoolNodesSql,
  rowOf({
    ...{ nodeId: nodeDetail.node_id, of: int4, cluster: nodeDetail.cluster, node: nodeDetail.node },
    ...{ lastSeen: nodeDetail.last_seen, ...AGENT_COLUMNS },
    ...{ mode: text, streamState: nodeDetail.stream_state, fallbacks: int8 },
    ...{ verdict: word('safe', 'unsafe', 'unknown'), reason: text },
    ...{ missed: nullable(float8), decided: float8, highPerMillion: nullable(float8) },
    ...{ watched: nullable(float8), coveredMs: float8, possibleMs: float8, maxMs: nullable(float8) },
    ...{ runtimeName: nullable(text), runtimeVersion: nullable(text), kubeletVersion: nullable(text) },
    ...{ agentVersion: nullable(text), osImage: nullable(text), kernelVersion: nullable(text) },
  }),
);

export const readPoolRelists = statement(
  readPoolRelistsSql,
  rowOf({ nodeId: nullable(int4), slice: int4, p99Ms: nullable(float8), maxMs: float8 }),
);

export const readObservedDays = statement(readObservedDaysSql, rowOf({ day: date, nodes: int4 }));
