// The types of the messages in proto/ctrlmesh/v1/mesh.proto, the contract. The bodies of
// resources are bytes here. Proto-loader would generate 34 files of types, without unions for a oneof.

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Exactly one of the fields. */
export type ProxyMessage =
  | { readonly message?: "registration"; readonly registration: RegistrationMessage }
  | { readonly message?: "promise"; readonly promise: PromiseMessage }
  | { readonly message?: "ack"; readonly ack: AckMessage }
  | { readonly message?: "nack"; readonly nack: NackMessage }
  | { readonly message?: "report"; readonly report: ReportMessage };

/** Exactly one of the fields. */
export type ManagerMessage =
  | { readonly message?: "welcome"; readonly welcome: WelcomeMessage }
  | { readonly message?: "redirect"; readonly redirect: { readonly endpoint: string } }
  | { readonly message?: "update"; readonly update: UpdateMessage };

export interface RegistrationMessage {
  readonly pod: PodRef | null;
  readonly proxyVersion: string;
  readonly capabilities: readonly string[];
  readonly streamNumber: number;
  /** The highest epoch that the proxy has promised to follow; 0 if none. */
  readonly epoch: number;
  readonly route: RouteClaimsMessage | null;
}

export interface RouteClaimsMessage {
  readonly version: number;
  /** The last route that the proxy acknowledged, or could have acknowledged. */
  readonly acknowledged: ResourceMessage | null;
  /** Routes that the proxy has enforced since, oldest first. */
  readonly inDoubt: readonly ResourceMessage[];
  readonly mayHoldMore: boolean;
}

export interface WelcomeMessage {
  readonly epoch: number;
  /** Hashes of the registration's tables that the manager needs. */
  readonly wantedTables: readonly Uint8Array[];
  /** The resource types that the replica sends to every proxy that supports them. */
  readonly types: readonly string[];
}

interface PromiseMessage {
  readonly epoch: number;
  readonly tables: readonly Uint8Array[];
}

export interface ResourceMessage {
  readonly type: string;
  readonly version: number;
  readonly digest: string;
  readonly body: Uint8Array;
}

export interface UpdateMessage {
  readonly nonce: number;
  readonly resource: ResourceMessage | null;
  /** Digest of the base if the body is a delta; otherwise "". */
  readonly baseDigest: string;
}

export interface AckMessage {
  readonly type: string;
  readonly nonce: number;
  readonly version: number;
}

export interface NackMessage extends AckMessage {
  readonly problems: readonly string[];
  /** The proxy does not enforce the base of the delta, which itself has no problem. */
  readonly needsWhole: boolean;
}

/** By kind. A new kind needs a member of the oneof in `Report`, a field here and a value in NO_REPORTS. */
export interface Reports {
  /** The pod holds the operator's lock. */
  readonly leader: boolean;
  /** The API server's last answer to the operator's requests for its renamed lock; null before the first. */
  readonly lock: LockAccessMessage | null;
  readonly backlog: BacklogMessage;
  /** A lock that the operator seems to use, and that the app does not name. */
  readonly unnamedLock: UnnamedLockMessage | null;
  readonly policies: PolicyReportMessage;
  /** Why the proxy has no certificate for webhook calls; "" if it has one or needs none. */
  readonly webhookProblem: string;
  /** What it sees of the other clusters that its subset owns. */
  readonly clusters: ClusterReportMessage;
  /** Null before the proxy's first report: it may hold any share. */
  readonly shares: ShareReportMessage | null;
}

/** The reports of a proxy that has reported nothing. */
export const NO_REPORTS: Reports = {
  leader: false,
  lock: null,
  backlog: { heldNamespaces: 0, drainingWrites: 0 },
  unnamedLock: null,
  policies: { digest: "", rules: [] },
  webhookProblem: "",
  clusters: { unreachable: [] },
  shares: null,
};

/** A report has exactly one kind. A null is sent as an empty message. */
export type ReportMessage = {
  [K in keyof Reports]: { readonly report?: K } & { readonly [P in K]: NonNullable<Reports[P]> };
}[keyof Reports];

export interface ClusterReportMessage {
  /** The clusters to which all connections have failed for some seconds, at most MAX_UNREACHABLE. */
  readonly unreachable: readonly UnreachableClusterMessage[];
}

export interface UnreachableClusterMessage {
  /** Name in the routes. */
  readonly cluster: string;
  readonly reason: string;
}

export const MAX_UNREACHABLE = 32;

export interface UnnamedLockMessage {
  readonly lockName: string;
  readonly resource: string;
}

export interface LockAccessMessage extends UnnamedLockMessage {
  readonly deniedVerbs: readonly string[];
  readonly reason: string;
}

export interface PolicyReportMessage {
  /** The digest of the enforced policies; "" while there are none. */
  readonly digest: string;
  /** Breakers that are not closed, and breakers that the process has closed; open ones come first. */
  readonly rules: readonly RuleStateMessage[];
}

export interface RuleStateMessage {
  /** The uid of the object that has the rule. */
  readonly uid: string;
  readonly rule: string;
  /** False: it has closed. */
  readonly opened: boolean;
  readonly sinceMs: number;
  /** The breaker is open, and its time is over: the next requests decide whether it closes. */
  readonly halfOpen: boolean;
  /** Why it opened, with the figure, in one sentence without a full stop; "" if it is closed. */
  readonly cause: string;
}

/** The shares that the proxy enforces and has stored. */
export interface ShareReportMessage {
  /** Of the resource that the shares are from; 0 for none. */
  readonly version: number;
  readonly shares: readonly ShareStateMessage[];
}

export interface ShareStateMessage {
  /** The uid of the object that has the rule. */
  readonly uid: string;
  readonly rule: string;
  /** Of the whole budget. */
  readonly millionths: number;
  /** The pod has used most of its share lately, or was refused. */
  readonly wantsMore: boolean;
}

export interface BacklogMessage {
  /** Unknown namespaces with requests that wait for the owner. */
  readonly heldNamespaces: number;
  /** Writes in flight that delay the proxy's acknowledgement. */
  readonly drainingWrites: number;
}

export interface CertificateRequestMessage {
  /** SubjectPublicKeyInfo in DER, ECDSA P-256. */
  readonly publicKey: Uint8Array;
}

export interface CertificateReplyMessage {
  /** The certificate, then the certificates that link it to a CA that operators may have loaded already. */
  readonly chainPem: string;
  /** All CAs of the mesh that are trusted. */
  readonly trustPem: string;
}
