// What a proxy says first on a stream: who it is and all that it may hold. Pure. Invariant: the manager grants by it, so it
// never tells less than the proxy may hold. Asked by mesh-client, anew for each stream.
import type { HelloMessage, PodRef, SnapshotMessage } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { type Held, MAX_IN_DOUBT } from "./snapshot-intake.ts";

export interface HelloFacts {
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

export function helloOf({ pod, proxyVersion, stream = 0, epoch, version, held }: HelloFacts): HelloMessage {
  const { acknowledged, inDoubt } = held;
  const newest = inDoubt.at(-1);
  const isMany = inDoubt.length > MAX_IN_DOUBT;
  const told = isMany && newest !== undefined ? [newest] : inDoubt;
  return {
    pod,
    version,
    digest: acknowledged?.digest ?? "",
    proxyVersion,
    enforced: acknowledged === undefined ? null : snapshotToWire(acknowledged, 0),
    inDoubt: [...told.map((snapshot) => snapshotToWire(snapshot, 0)), ...(isMany || held.mayHoldMore ? [ANYTHING] : [])],
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
