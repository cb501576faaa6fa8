// What a proxy says first on a stream: who it is and all that it may hold. Pure. Invariant: the manager grants by it, so it
// never tells less than the proxy may hold. Asked by mesh-client, anew for each stream.
import type { HelloMessage, PodRef } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { type Held, MAX_IN_DOUBT } from "./snapshot-intake.ts";

export interface HelloFacts {
  readonly pod: PodRef;
  readonly proxyVersion: string;
  /** Version of the snapshot in force; 0 if there is none. */
  readonly version: number;
  readonly held: Held;
}

export function helloOf({ pod, proxyVersion, version, held }: HelloFacts): HelloMessage {
  const { acknowledged, inDoubt } = held;
  const common = { pod, version, proxyVersion };
  const newest = inDoubt.at(-1);
  // A digest without its snapshot: the manager then takes this proxy to hold everything, until it acknowledges something.
  if (newest !== undefined && inDoubt.length > MAX_IN_DOUBT) {
    return { ...common, digest: newest.digest, enforced: null, inDoubt: [] };
  }
  return {
    ...common,
    digest: acknowledged?.digest ?? "",
    enforced: acknowledged === undefined ? null : snapshotToWire(acknowledged, 0),
    inDoubt: inDoubt.map((snapshot) => snapshotToWire(snapshot, 0)),
  };
}
