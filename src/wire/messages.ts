// The messages of proto/ctrlmesh/v1/mesh.proto as @grpc/proto-loader gives and takes them with the options in
// load-proto.ts. The .proto file is the contract; these types follow it field by field.

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface RegistrationMessage {
  readonly pod: PodRef | null;
  readonly version: number;
  readonly digest: string;
  readonly proxyVersion: string;
  /** The last snapshot that the proxy acknowledged, or could have; null if none. */
  readonly enforced: SnapshotMessage | null;
  /** What it has come to enforce since, oldest first, and cannot acknowledge yet. */
  readonly inDoubt: readonly SnapshotMessage[];
  /** Grows with every stream; absent or 0 from proxies that do not count. */
  readonly stream?: number;
  readonly takesDeltas?: boolean;
  /** The highest epoch that it has promised to follow; absent or 0 if none. */
  readonly epoch?: number;
  /** It answers a welcome with a promise. */
  readonly takesEpochs?: boolean;
}

export interface AckMessage {
  readonly nonce: number;
  readonly version: number;
}

export interface NackMessage extends AckMessage {
  readonly problems: readonly string[];
  /** Nothing is wrong, but the delta is the difference to another snapshot. */
  readonly needsSnapshot?: boolean;
}

export interface ReportMessage {
  readonly leader: boolean;
  readonly lock: LockAccessMessage | null;
  /** Namespaces whose requests wait for their owner. */
  readonly held?: number;
  /** Writes that delay an ACK. */
  readonly drainingWrites?: number;
}

export interface LockAccessMessage {
  readonly lockName: string;
  readonly resource: string;
  readonly deniedVerbs: readonly string[];
  readonly reason: string;
}

/** From proxy to manager: exactly one of the fields. */
export type ProxyMessage =
  | { readonly message?: "registration"; readonly registration: RegistrationMessage }
  | { readonly message?: "ack"; readonly ack: AckMessage }
  | { readonly message?: "nack"; readonly nack: NackMessage }
  | { readonly message?: "report"; readonly report: ReportMessage }
  | { readonly message?: "promise"; readonly promise: PromiseMessage };

export interface PromiseMessage {
  readonly epoch: number;
  /** The bytes of the tables that the welcome has asked for. */
  readonly tables?: readonly Uint8Array[];
}

export interface ResourceMatchMessage {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
}

export interface LabelTermMessage {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

export interface RuleMessage {
  /** A kind that this version does not know is a number. */
  readonly kind: "KIND_UNSPECIFIED" | "LIMIT" | "SUBSET" | "OBJECT_LIMIT" | "OBJECTS" | "FENCE" | "FENCE_MOVES";
  readonly subset: string;
  readonly resources: readonly ResourceMatchMessage[];
  readonly origin: string;
  /** Absent in what an older version stored. */
  readonly terms?: readonly LabelTermMessage[];
}

export interface NamespaceClassMessage {
  readonly rules: readonly number[];
  readonly namespaces: readonly string[];
}

export interface RouteTableMessage {
  readonly rules: readonly RuleMessage[];
  readonly classes: readonly NamespaceClassMessage[];
  readonly sharedResources: readonly ResourceMatchMessage[];
  readonly fenced: readonly string[];
  /** Absent in what an older version stored. */
  readonly retained?: readonly RetainedClassMessage[];
}

export interface RetainedClassMessage {
  readonly rules: readonly { readonly resources: readonly ResourceMatchMessage[]; readonly visible: boolean }[];
  readonly namespaces: readonly string[];
}

/** A snapshot as the difference to one in force; see the .proto file. */
export interface SnapshotDeltaMessage {
  readonly nonce: number;
  readonly version: number;
  readonly baseDigest: string;
  readonly digest: string;
  /** Namespaces that are new or that other rules contain now. */
  readonly classes: readonly NamespaceClassMessage[];
  readonly removed: readonly string[];
  readonly fenced: readonly string[];
  readonly unfenced: readonly string[];
}

export interface SnapshotMessage {
  readonly nonce: number;
  readonly version: number;
  readonly digest: string;
  readonly app: { readonly namespace: string; readonly name: string } | null;
  readonly subset: string;
  readonly podNamespace: string;
  readonly lockName: string;
  readonly table: RouteTableMessage | null;
  readonly callers: CallerPolicyMessage | null;
  /** In a registration, instead of the table: SHA-256 of its bytes. */
  readonly tableHash?: Uint8Array;
}

export interface CallerPolicyMessage {
  readonly userAgent: string;
  readonly defaultOnlyUserAgents: readonly string[];
  readonly stripManagedFields: boolean;
}

/** From manager to proxy: exactly one of the fields. */
export type ManagerMessage =
  | { readonly message?: "snapshot"; readonly snapshot: SnapshotMessage }
  | { readonly message?: "redirect"; readonly redirect: { readonly endpoint: string } }
  | { readonly message?: "delta"; readonly delta: SnapshotDeltaMessage }
  | { readonly message?: "welcome"; readonly welcome: WelcomeMessage };

export interface WelcomeMessage {
  readonly epoch: number;
  /** Hashes of tables of the registration that the manager has to be told. */
  readonly wantedTables?: readonly Uint8Array[];
}

export interface CertificateRequestMessage {
  /** SubjectPublicKeyInfo in DER, ECDSA P-256. */
  readonly publicKey: Uint8Array;
}

export interface CertificateReplyMessage {
  /** The certificate first, then what leads to a CA that operators may have loaded already. */
  readonly chainPem: string;
  /** All CAs of the mesh that are trusted now. */
  readonly trustPem: string;
}
