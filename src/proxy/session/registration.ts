// What a proxy says first on a stream: who it is and all that it may hold, its tables by hash; and the tables themselves, of which the
// manager asks for those that it does not know. Pure. Invariant: the manager grants by it, so it never tells less than the proxy may
// hold; and what is told later is what the registration has named, whatever is held by then. Asked by mesh-client, anew for each stream.
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import type { PodRef, RegistrationMessage, SnapshotMessage } from "../../wire/messages.ts";
import { type Held, MAX_IN_DOUBT } from "./snapshot-intake.ts";
import type { TableBytes } from "./table-bytes.ts";

export interface RegistrationFacts {
  readonly pod: PodRef;
  readonly proxyVersion: string;
  /** Number of the stream; see stream-ledger.ts. Absent where nobody counts. */
  readonly stream?: number;
  /** The highest epoch that it has promised to follow; absent if it promises nothing. */
  readonly epoch?: number;
  /** Version of the snapshot in force; 0 if there is none. */
  readonly version: number;
  readonly held: Held;
}

export interface Greeting {
  readonly registration: RegistrationMessage;
  /** The bytes of those tables of the registration whose hashes these are. */
  tablesFor(hashes: readonly Uint8Array[]): Uint8Array[];
}

export function greetingOf(facts: RegistrationFacts, bytes: TableBytes): Greeting {
  const { acknowledged, inDoubt } = facts.held;
  // Equal ones once: a table can come back under a newer version, and a manager reads no more of them than it has asked for.
  const byHash = new Map<string, RouteTable>();
  for (const { table } of [...(acknowledged === undefined ? [] : [acknowledged]), ...inDoubt]) {
    byHash.set(bytes.hashOf(table).toString("base64"), table);
  }
  const tables = [...byHash.values()];
  return {
    registration: registrationOf(facts, bytes.hashOf),
    tablesFor: (hashes) =>
      tables.filter((table) => hashes.some((hash) => bytes.hashOf(table).equals(hash))).map((table) => bytes.encode(table)),
  };
}

function registrationOf(
  { pod, proxyVersion, stream = 0, epoch, version, held }: RegistrationFacts,
  hashOf: (table: RouteTable) => Uint8Array,
): RegistrationMessage {
  const { acknowledged, inDoubt } = held;
  const newest = inDoubt.at(-1);
  const isMany = inDoubt.length > MAX_IN_DOUBT;
  const told = isMany && newest !== undefined ? [newest] : inDoubt;
  const named = ({ table, ...rest }: Snapshot): SnapshotMessage => ({ ...rest, nonce: 0, table: null, tableHash: hashOf(table) });
  return {
    pod,
    version,
    digest: acknowledged?.digest ?? "",
    proxyVersion,
    enforced: acknowledged === undefined ? null : named(acknowledged),
    inDoubt: [...told.map(named), ...(isMany || held.mayHoldMore ? [ANYTHING] : [])],
    stream,
    takesDeltas: true,
    epoch: epoch ?? 0,
    takesEpochs: epoch !== undefined,
  };
}

// No manager can read it. It then takes this proxy to hold everything besides, until it acknowledges something; what is told beside
// it stays: a pod that said nothing but this would be kept from its own namespaces.
const ANYTHING: SnapshotMessage = {
  nonce: 0,
  version: 0,
  digest: "",
  app: null,
  subset: "",
  podNamespace: "",
  lockName: "",
  table: null,
  callers: null,
};
