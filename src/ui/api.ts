/*
 * The answers of `plegwatch ui`: the JSON between the server and the page. Types only, so that a browser can import it.
 *
 *   GET /api/fleet                                    FleetAnswer
 *   GET /api/unobserved                               UnobservedAnswer
 *   GET /api/timeline?cluster=&node= [&from=&to= | &last=seconds]  TimelineAnswer
 *   GET /api/fallbacks [?from=&to= | ?last=seconds]  FallbacksAnswer
 *   GET /api/finding?id= [&cluster=&node=]            FindingAnswer
 *   GET /api/versions [?from=&to= | ?last=seconds]   VersionsAnswer
 *   GET /api/hours [?days=]                           HoursAnswer
 *   GET /api/change                                   ChangeAnswer
 *   GET /api/search?q=                                SearchAnswer
 *   GET /api/pool?by=&cluster=&pool=&runtime=&runtimeVersion=&kubelet= [&from=&to= | &last=seconds]  PoolAnswer
 *   GET /api/neighbours?cluster=&node= [&from=&to= | &last=seconds]  NeighboursAnswer
 *   GET /api/record?cluster=&node= [&id= | &from=&to=]  RecordAnswer
 *
 * An answer that is not 200 is an ErrorAnswer. Where access is by token, each request carries `Authorization: Bearer TOKEN`. Texts come from
 * nodes, pods and runtimes, and nobody has checked them. Bounded answers say what was left out.
 */

/** UTC, RFC 3339, to the microsecond at most: `2026-11-22T03:12:00.123456Z`. In a request: also to the second. */
export type Time = string;

/** Why there is nothing where something could be, as a sentence for the reader; null where there is something. */
export type WhyEmpty = string | null;

export interface ErrorAnswer {
  readonly error: {
    readonly code: ErrorCode;
    /** The fault, in a sentence. */
    readonly message: string;
    /** The cure, in a sentence. */
    readonly cure: string;
  };
}

/**
 *   TOKEN_REQUIRED      401  no token came with the request, and one is needed
 *   TOKEN_REFUSED       401  the API server does not accept the token, or it has expired
 *   USER_UNKNOWN        401  the proxy in front did not say who asks
 *   FORBIDDEN           403  the user may not get plegreports, or the request did not come as it must
 *   BAD_PARAMETER       400  a parameter is missing or not valid
 *   NOT_FOUND           404  no such path, node or finding, or none that may be read
 *   AMBIGUOUS           409  several nodes have a finding of this id: name cluster and node; or several groups of a fleet have the cluster
 *   METHOD_NOT_ALLOWED  405  only GET and HEAD, or only POST
 *   TOO_LARGE           413  the body is larger than a question
 *   NOT_JSON            415  the body is not declared as JSON
 *   DATABASE_AWAY       503  Postgres does not answer now, or cannot be used; ask again
 *   TOO_SLOW            503  the query was stopped: ask for less
 *   BUSY                503  too many requests at once; ask again
 *   ACCESS_UNKNOWN      503  the API server could not be asked who may read
 *   INTERNAL            500  a defect; the log of the server says more
 */
export type ErrorCode =
  | 'TOKEN_REQUIRED'
  | 'TOKEN_REFUSED'
  | 'USER_UNKNOWN'
  | 'FORBIDDEN'
  | 'BAD_PARAMETER'
  | 'NOT_FOUND'
  | 'AMBIGUOUS'
  | 'METHOD_NOT_ALLOWED'
  | 'TOO_LARGE'
  | 'NOT_JSON'
  | 'DATABASE_AWAY'
  | 'TOO_SLOW'
  | 'BUSY'
  | 'ACCESS_UNKNOWN'
  | 'INTERNAL';

/** Rows in the order of their time, or of their beginning: at most so many, the latest ones, or those that ended last. */
export interface Rows<T> {
  readonly rows: readonly T[];
  /** Null if these are all of them. */
  readonly cut: Cut | null;
}

export interface Cut {
  /** The rows are complete after this time. */
  readonly until: Time;
}

// ---- the fleet

export interface FleetAnswer {
  /** The clock of the database: every age is to be counted from here. */
  readonly now: Time;
  readonly clusters: readonly FleetCluster[];
  /** By cluster and name. */
  readonly nodes: readonly FleetNode[];
  /** How many nodes were left out; null if none. */
  readonly leftOut: number | null;
  readonly empty: WhyEmpty;
}

export interface FleetCluster {
  readonly name: string;
  readonly nodes: number;
}

/** Reporting: its agent reports. The others say why nothing is known of the present; with IngestBehind, evidence may be waiting to be stored. */
export type AgentState = 'Reporting' | 'AgentSilent' | 'NeverSeen' | 'IngestBehind' | 'NotReportedYet';

export interface FleetNode {
  readonly cluster: string;
  readonly node: string;
  /** The node pool by the labels of the Node; null where no label says it. */
  readonly pool: string | null;
  readonly agent: AgentState;
  /** Generic, Starting, Evented, Fallback, EventedHint, HintDisabled or Unknown; a later version may have others. */
  readonly mode: string;
  /** Why the mode is this one; for Unknown: why it is not known. */
  readonly modeReason: string | null;
  readonly modeSince: Time | null;
  /** Active, Arming, Silent, Starved, Interrupted, Unsupported, Disabled, Unsafe, Off or Unknown. */
  readonly streamState: string;
  readonly streamReason: string | null;
  /** Missed events of the last 24 hours that did not come later, whether its agent reports now or not; null where nothing could be observed. */
  readonly missed24h: number | null;
  /**
   * The share of the time in which the stream was watched, from 0 to 1, since the beginning of the hour 24 hours ago, or since the node is known; null
   * where there is no agent, or no minute of it yet.
   */
  readonly completeness24h: number | null;
  /** Why the evidence is not complete, as in the condition EvidenceComplete of its report; null if it is, or no report was built. */
  readonly incompleteReason: string | null;
  /** Listing, ListHangs or ListsFailing, by the latest that its agent reported; null if that said nothing yet. */
  readonly lists: 'Listing' | 'ListHangs' | 'ListsFailing' | null;
  /** NAMESPACE/POD/CONTAINER, NAMESPACE/POD, runtime or unknown: the cause of a list that hangs; null if none does. */
  readonly heldUpBy: string | null;
  readonly runtimeName: string | null;
  readonly runtimeVersion: string | null;
  readonly kubeletVersion: string | null;
  readonly agentVersion: string | null;
  readonly lastSeen: Time | null;
}

// ---- what is not observed

export interface UnobservedAnswer {
  /** The clock of the database. */
  readonly now: Time;
  /** How many nodes there are, those included of which everything is observed. */
  readonly nodes: number;
  /** The number of them that are left out here; null if none. */
  readonly leftOut: number | null;
  /** How many nodes there are of each, the most frequent first. */
  readonly reasons: readonly UnobservedReason[];
  /** How many rarer ones are left out. */
  readonly reasonsLeftOut: number;
  /** By cluster and node; a node may have several. */
  readonly rows: readonly UnobservedNode[];
  readonly empty: WhyEmpty;
}

/** Why something of a node is not observed now. */
export interface WhyUnobserved {
  /** Everything: nothing of the present is known. Else its events, its lists of containers, or the mode of its kubelet. */
  readonly what: 'everything' | 'events' | 'lists' | 'mode';
  /** The reason of a condition of its report: AgentReporting, StreamConnected, RelistHealthy or EventedPLEGInUse. */
  readonly reason: string;
  /** The cause that kept the agent from the metrics of the kubelet, such as Forbidden; null for all else. */
  readonly cause: string | null;
}

export interface UnobservedReason extends WhyUnobserved {
  readonly nodes: number;
}

export interface UnobservedNode extends WhyUnobserved {
  readonly cluster: string;
  readonly node: string;
  readonly pool: string | null;
  /** Message of the condition. */
  readonly message: string;
  /** Null if it never was observed, or nobody knows since when it is not. */
  readonly since: Time | null;
  readonly lastSeen: Time | null;
}

// ---- one node

export interface TimelineAnswer {
  readonly cluster: string;
  readonly node: string;
  readonly now: Time;
  readonly from: Time;
  readonly to: Time;
  /** When evidence of the node begins and ends; null if it never had an agent. */
  readonly firstSeen: Time | null;
  readonly lastSeen: Time | null;
  /** Until here, what the present agent has sent says of every change whether its event came; null as above. */
  readonly decidedThrough: Time | null;
  /** The present agent has sent evidence without a signature: whoever has the Redis user of agents may have sent it. */
  readonly isUnsigned: boolean;
  /** The containers that the rows below name by their place in this list. */
  readonly containers: readonly Container[];
  readonly sessions: Rows<Session>;
  readonly gaps: Rows<Gap>;
  readonly hangs: Rows<ListHang>;
  /** The first one is the mode at the start of the period, and may have begun before. */
  readonly modes: Rows<Mode>;
  /** From the first time that the Node was not Ready. The first one is that at the start of the period, and may have begun before. */
  readonly conditions: Rows<Condition>;
  readonly relists: Rows<RelistSlice>;
  /** The upper bounds of the buckets of `hist`, in milliseconds. */
  readonly histBoundsMs: readonly number[];
  readonly events: Rows<ContainerEvent>;
  readonly changes: Rows<ListChange>;
  readonly findings: Rows<TimelineFinding>;
  /** Lags of starts and stops that findings are about, and of those that were followed after a fallback and shown late. */
  readonly lags: Rows<ChangeLag>;
  /** Stored rows about the pods of `lags` from before `events` and `changes`; of the latest pods, the latest rows. */
  readonly earlier: { readonly events: readonly ContainerEvent[]; readonly changes: readonly ListChange[] };
  readonly empty: WhyEmpty;
}

export interface Container {
  readonly id: string;
  readonly isSandbox: boolean;
  readonly podUid: string | null;
  readonly podNamespace: string | null;
  readonly podName: string | null;
  /** Null for a sandbox. */
  readonly name: string | null;
}

/** A subscription to the runtime's events. */
export interface Session {
  readonly openedAt: Time;
  /** When its first event came: only from then on is it known to work. */
  readonly armedAt: Time | null;
  readonly closedAt: Time | null;
  readonly code: string | null;
  readonly message: string | null;
  readonly events: number;
  readonly replayed: number;
}

/** A list of the agent that was not answered within five seconds. */
export interface ListHang {
  readonly from: Time;
  /** Null while it hangs. */
  readonly to: Time | null;
  /** The object of its wait, in a sentence. */
  readonly why: string;
  /** The container or sandbox that it waits for; null if none is proven. */
  readonly container: number | null;
}

/** A stretch that was not observed. */
export interface Gap {
  /** stream, list, spool, seq, agent, findings, kubelet or kubelet_status. */
  readonly scope: string;
  readonly cause: string;
  readonly from: Time;
  /** Null while it lasts. */
  readonly to: Time | null;
  readonly filledAt: Time | null;
}

export interface Mode {
  readonly at: Time;
  /** A scrape last saw the mode before at this time. */
  readonly notBefore: Time | null;
  readonly fromMode: string;
  readonly toMode: string;
  readonly reason: string | null;
  /** Null if it is not known. */
  readonly kubeletVersion: string | null;
}

/** The Ready condition of the Node. */
export interface Condition {
  readonly at: Time;
  /** True, False or Unknown. */
  readonly status: string;
  readonly reason: string;
  /** Why it is not Ready, in words of a closed set: pleg, runtime, network and others. Empty for a Node that is. */
  readonly causes: readonly string[];
  /** Message of a condition about PLEG; null for others. */
  readonly message: string | null;
}

/** The relists of one slice of the period: a minute, or several if the period is long. */
export interface RelistSlice {
  readonly at: Time;
  readonly seconds: number;
  readonly relists: number;
  readonly errors: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
  /** Relists by duration; the upper bounds are `histBoundsMs`, and the last bucket has none. */
  readonly hist: readonly number[];
  /** The kubelet's own relists; null where it was not scraped. */
  readonly kubeletRelists: number | null;
  readonly kubeletP99Ms: number | null;
  /**
   * The pressure of the node: the share of the time in which at least one of its tasks (`some`), or all that were not idle (`full`), waited; null
   * where its kernel does not report it.
   */
  readonly cpuSome: number | null;
  readonly ioSome: number | null;
  readonly ioFull: number | null;
  readonly memorySome: number | null;
  readonly memoryFull: number | null;
}

export interface ContainerEvent {
  /** When the agent received it. */
  readonly at: Time;
  /** When the runtime built it. */
  readonly createdAt: Time | null;
  /** CREATED, STARTED, STOPPED or DELETED. */
  readonly type: string;
  /** The place in `containers`; null if its identity is not stored. */
  readonly container: number | null;
  /** Older than the subscription. */
  readonly replayed: boolean;
  /** How its container ended, such as `exit 137 OOMKilled`; null unless the event says so. */
  readonly exit: string | null;
}

/** A list showed another state than the one before. */
export interface ListChange {
  /** The change happened within this window. */
  readonly from: Time;
  readonly to: Time;
  readonly container: number | null;
  /** non-existent, unknown, running or exited. */
  readonly oldState: string;
  readonly newState: string;
}

export interface TimelineFinding {
  readonly id: string;
  readonly kind: string;
  readonly eventType: string | null;
  readonly cause: string | null;
  readonly container: number | null;
  /** Where it belongs on the timeline: when it happened, else the end of its window, and never after it was found. */
  readonly at: Time;
  /** The event was due within this window. */
  readonly from: Time | null;
  readonly to: Time | null;
  readonly occurredAt: Time | null;
  readonly detectedAt: Time;
  /** The event of a miss came after all. */
  readonly resolvedAt: Time | null;
}

/**
 * For how long a start or stop was not shown: by the kubelet's own status (docs/explanation/kubelet-lag.md), and by the API server
 * (docs/explanation/status-lag.md). A bound is null where it is not known.
 */
export interface ChangeLag {
  /** Null where no finding is about it. */
  readonly findingId: string | null;
  readonly kind: string | null;
  /** STARTED or STOPPED. */
  readonly eventType: string;
  readonly container: number | null;
  /** When it had happened at the latest: by the runtime's own time, where that is known. */
  readonly at: Time;
  /** shown, not_shown or not_observed; null where nothing is recorded of it. */
  readonly kubeletKnew: string | null;
  /** Why that was not observed, in words. */
  readonly kubeletWhy: string | null;
  readonly kubeletAtLeastMs: number | null;
  readonly kubeletAtMostMs: number | null;
  readonly lagMinMs: number | null;
  readonly lagMaxMs: number | null;
  /** Why no more is known of what the API server showed, in words. */
  readonly lagReason: string | null;
  /** The pod is still read. */
  readonly isRead: boolean;
}

// ---- one finding

export interface FindingAnswer {
  readonly id: string;
  readonly cluster: string;
  readonly node: string;
  readonly kind: string;
  readonly eventType: string | null;
  readonly cause: string | null;
  readonly container: Container | null;
  readonly from: Time | null;
  readonly to: Time | null;
  readonly occurredAt: Time | null;
  readonly detectedAt: Time;
  readonly resolvedAt: Time | null;
  readonly latenessMs: number | null;
  readonly deliveryMs: number | null;
  readonly lagMinMs: number | null;
  readonly lagMaxMs: number | null;
  readonly lagAnomalous: boolean | null;
  readonly mode: string;
  readonly runtimeName: string | null;
  readonly runtimeVersion: string | null;
  readonly kubeletVersion: string | null;
  /** `missed STOPPED`, and once it is resolved `overdue STOPPED, resolved`. */
  readonly title: string;
  /** The meaning of the kind of the finding, when it happened, and how long the published status was behind, in sentences. */
  readonly meaning: string;
  /** Why the event of a miss was due: what `cause` means. Empty for other findings. */
  readonly provenBy: string;
  readonly times: string;
  /** The consequence of a miss for the kubelet. Empty for other findings. */
  readonly saysOfKubelet: string;
  /** With which real runtimes the rules were checked that judged this; empty where the runtime is not known. */
  readonly runtimeRules: string;
  readonly statusLag: string;
  /** The events that were due, received and listed around it, and why nothing else explains it, in the order in which one checks it. */
  readonly evidence: readonly EvidenceSection[];
  /** The period of the node's timeline that shows it. */
  readonly around: { readonly from: Time; readonly to: Time };
  /** Commands with which somebody else checks it. */
  readonly checks: readonly string[];
  /** The issue for the developers of the runtime, in Markdown. */
  readonly issue: { readonly withoutNames: string; readonly withNames: string };
}

export interface EvidenceSection {
  readonly title: string;
  readonly lines: readonly EvidenceLine[];
}

export interface EvidenceLine {
  readonly at: Time | null;
  readonly until: Time | null;
  readonly fact: string;
  /** The view and the row where it is stored; null for what only the proof says. */
  readonly record: string | null;
}

// ---- fallbacks

export interface FallbacksAnswer {
  readonly now: Time;
  readonly from: Time;
  readonly to: Time;
  /** That lasted at some time of the period. */
  readonly rows: Rows<Fallback>;
  /** A row for each day and cluster on which a kubelet fell back. */
  readonly days: readonly DayOfFallbacks[];
  readonly observed: readonly ObservedDay[];
  readonly empty: WhyEmpty;
}

export interface DayOfFallbacks {
  readonly cluster: string;
  /** On which they began: 2026-11-22, in UTC. */
  readonly day: string;
  readonly fallbacks: number;
  readonly nodes: number;
}

/** The number of nodes on which an agent read the metrics of the kubelet on a day: of the others nobody knows whether they fell back. */
export interface ObservedDay {
  readonly day: string;
  readonly nodes: number;
}

/** A period in which a kubelet had given up its event stream. */
export interface Fallback {
  readonly cluster: string;
  readonly node: string;
  /** A scrape last saw the mode before at this time. */
  readonly notBefore: Time;
  /** A scrape first saw the fallback at this time. */
  readonly from: Time;
  /** Null while it lasts. */
  readonly to: Time | null;
  /** How long it lasted, until now if it lasts. */
  readonly hours: number | null;
  readonly mode: string;
  readonly reason: string | null;
  /** The mode after it: Unknown where nobody observed the kubelet any more; null while it lasts. */
  readonly nextMode: string | null;
  /** The code with which the agent's own stream ended at the same time: the runtime closed the stream for everybody. */
  readonly brokeWith: string | null;
  /** Missed events and late statuses of the kubelet that were found on the node while it lasted. */
  readonly findings: number;
  readonly kubeletVersion: string | null;
  readonly runtimeName: string | null;
  readonly runtimeVersion: string | null;
}

// ---- versions

export interface VersionsAnswer {
  readonly now: Time;
  readonly from: Time;
  readonly to: Time;
  readonly missRates: readonly MissRate[];
  /** By the last seven days, whatever the period. */
  readonly readiness: readonly PoolReadiness[];
  readonly empty: { readonly missRates: WhyEmpty; readonly readiness: WhyEmpty };
}

export interface MissRate {
  readonly cluster: string;
  readonly runtimeName: string | null;
  readonly runtimeVersion: string | null;
  readonly kubeletVersion: string | null;
  readonly nodes: number;
  /** Transitions of which it is known whether their event came, and how many of these were missed. */
  readonly decided: number;
  readonly missed: number;
  readonly perMillion: number | null;
  /** With 95 % confidence between these two. */
  readonly lowPerMillion: number | null;
  readonly highPerMillion: number | null;
}

/** How many nodes are ready for Evented PLEG. */
export interface PoolReadiness {
  readonly cluster: string;
  /** Null for nodes without a pool. */
  readonly pool: string | null;
  readonly safe: number;
  readonly unsafe: number;
  readonly unknown: number;
  /** The commonest reasons of nodes that are not safe, most frequent first, at most three. */
  readonly reasons: readonly string[];
}

// ---- a pool

/** The nodes of a group of the fleet. Fields that do not count for the grouping, or are not known, are null; without a cluster those of all. */
export interface PoolKey {
  readonly by: 'cluster' | 'pool' | 'version';
  readonly cluster: string | null;
  readonly pool: string | null;
  readonly runtimeName: string | null;
  readonly runtimeVersion: string | null;
  readonly kubeletVersion: string | null;
}

/** By the hours, unless the period is short and its minutes are stored: `from` and `to` are those of whole hours or minutes. */
interface OfPool {
  readonly now: Time;
  readonly from: Time;
  readonly to: Time;
  /** By cluster and name. */
  readonly nodes: readonly PoolNode[];
  /** How many nodes of the pool were left out; null if none. */
  readonly leftOut: number | null;
  readonly empty: WhyEmpty;
}

export interface PoolAnswer extends OfPool {
  readonly verdict: Readiness;
  /** The verdict with its reason, in a sentence. */
  readonly sentence: string;
  /** The share of the time of all nodes in which their streams were watched; null if nothing of it could be. */
  readonly watched: number | null;
  /** How long each of the `slices` from `from` on is; those that are still to come are left out. */
  readonly sliceSeconds: number;
  readonly slices: number;
  /** The median of the longest relists of all nodes; null where fewer than three relisted. */
  readonly medianMs: readonly (number | null)[];
  /** The lines of nodes with relists in the period: those with the longest ones, by the place of their nodes. */
  readonly lines: readonly RelistLine[];
  /** How many nodes with relists have no line. */
  readonly linesLeftOut: number;
}

export interface NeighboursAnswer extends OfPool {
  readonly pool: PoolKey;
  readonly nodes: readonly Neighbour[];
}

export interface RecordAnswer {
  /** The name of the file, and what is in it. */
  readonly file: string;
  readonly html: string;
}

/** Whether Evented PLEG would be safe. */
export type Readiness = 'safe' | 'unsafe' | 'unknown';

/** A node in a period. */
export interface PoolNode {
  readonly cluster: string;
  readonly node: string;
  /** Now. */
  readonly agent: AgentState;
  /** At the end of the period. */
  readonly mode: string;
  /** Now. */
  readonly streamState: string;
  /** How often its kubelet fell back, with the fallback in which the period began. */
  readonly fallbacks: number;
  readonly verdict: Readiness;
  readonly reason: string;
  /** Missed events that did not come later; null where nothing was watched. */
  readonly missed: number | null;
  /** Transitions of which it is known whether their event came. */
  readonly decided: number;
  /** The share of the time, from its first evidence on, in which its stream was watched; null if it never had an agent, or not in this period. */
  readonly watched: number | null;
  /** The longest relist; null if none is recorded. */
  readonly maxMs: number | null;
  /** At the end of what is known of the period; null if nothing is. */
  readonly runtimeName: string | null;
  readonly runtimeVersion: string | null;
  readonly kubeletVersion: string | null;
  readonly agentVersion: string | null;
  readonly osImage: string | null;
  readonly kernelVersion: string | null;
}

export interface Neighbour extends PoolNode {
  /** The 99th percentile of its relists. */
  readonly p99Ms: number | null;
}

export interface RelistLine {
  readonly node: number;
  /** The longest one of each slice; null where none is recorded. */
  readonly longestMs: readonly (number | null)[];
}

// ---- the fleet by hour

/** The last days until now, in slices of whole hours. */
export interface HoursAnswer {
  readonly now: Time;
  readonly from: Time;
  readonly to: Time;
  /** How long a slice is; the last one may still last. */
  readonly seconds: number;
  /** The pools with the most nodes. */
  readonly pools: readonly PoolSlices[];
  /** How many pools were left out; null if none. */
  readonly leftOut: number | null;
  readonly versions: readonly VersionChange[];
  /** More versions changed than are answered: those of the fewest nodes are left out. */
  readonly versionsCut: boolean;
  readonly empty: WhyEmpty;
}

/** Each list has a value for each slice. */
export interface PoolSlices {
  readonly cluster: string;
  /** Null for nodes without a pool. */
  readonly pool: string | null;
  /** Those that are there now. */
  readonly nodes: number;
  /** Events missed that did not come later, by when that was found. */
  readonly missed: readonly number[];
  /** Kubelets that were in fallback at some time. */
  readonly fallen: readonly number[];
  /** Nodes whose PLEG was slow or hung at some time: a relist of more than ten seconds, or NotReady because of PLEG. */
  readonly slow: readonly number[];
  /** For how long its nodes were known, all together, and for how long of it their event streams were watched. */
  readonly knownSeconds: readonly number[];
  readonly watchedSeconds: readonly number[];
}

/** Nodes of a pool began to run another version. */
export interface VersionChange {
  readonly cluster: string;
  readonly pool: string | null;
  /** The beginning of the slice. */
  readonly at: Time;
  readonly what: 'kubelet' | 'runtime';
  readonly before: string;
  readonly after: string;
  readonly nodes: number;
}

/** The changes for the worse in the last 24 hours, against the 24 hours before. */
export interface ChangeAnswer {
  readonly now: Time;
  /** unknown: nothing was observed that can be compared. */
  readonly verdict: 'worse' | 'same' | 'unknown';
  readonly sentence: string;
}

// ---- search

export interface SearchAnswer {
  readonly hits: readonly SearchHit[];
  /** More matched than are answered. */
  readonly cut: boolean;
  readonly empty: WhyEmpty;
}

export interface SearchHit {
  readonly cluster: string;
  readonly node: string;
  readonly found: 'node' | 'pod' | 'container' | 'finding';
  /** The name, `namespace/name` of the pod, or the id that matched. */
  readonly text: string;
  /** When it was last seen, for the period of the timeline; null for a node that never had an agent. */
  readonly at: Time | null;
}

// ---- a page in a file

/** The content of a page that `--html` wrote into a file. It is in the file, and nobody is asked. */
export interface PageRecord {
  readonly writtenAt: Time;
  /** Version of the plegwatch that wrote it. */
  readonly version: string;
  readonly shows: 'timeline' | 'finding';
  readonly timeline: TimelineAnswer;
  /** The findings that can be opened. */
  readonly findings: readonly FindingAnswer[];
}
