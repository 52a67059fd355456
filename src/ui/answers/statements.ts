/*
 * The statements of this folder, with the rows that they return: what src/ui/api.ts promises.
 */
import * as types from '../../store/schema/columns.ts';
import { cluster, nodeCondition, readyChange, reportCondition } from '../../store/schema/tables.ts';
import { findingDetail, nodes } from '../../store/schema/views.ts';
import { nullable, rowOf, statement, word } from '../../store/statement.ts';
import readConditionsSql from './sql/readConditions.sql';
import readFallbacksSql from './sql/readFallbacks.sql';
import readFleetSql from './sql/readFleet.sql';
import readLagsSql from './sql/readLags.sql';
import readMissRatesSql from './sql/readMissRates.sql';
import readObservedDaysSql from './sql/readObservedDays.sql';
import readRelistsSql from './sql/readRelists.sql';

const { bool, date, float8, int4, int4Array, int8, text, timestamptz } = types;

export const readFleet = statement(
  readFleetSql,
  rowOf({
    ...{ cluster: nodes.cluster, node: nodes.node, pool: nullable(text) },
    agent: word('Reporting', 'AgentSilent', 'NeverSeen', 'NotReportedYet'),
    ...{ mode: nodes.mode, modeReason: nodes.mode_reason, modeSince: nodes.mode_since },
    ...{ streamState: nodes.stream_state, streamReason: nodes.stream_reason },
    ...{ missed24h: nullable(int4), completeness24h: nullable(float8) },
    incompleteReason: nullable(reportCondition.reason),
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

export const readObservedDays = statement(readObservedDaysSql, rowOf({ day: date, nodes: int4 }));
