// The handler of the resource type "peers": the pods to which this proxy may forward reviews. Invariant: a
// list that cannot be read leaves the last good one. Nothing is stored, since the next stream brings a list.
import type { Logger } from "../../base/log.ts";
import { PEERS, type PodPeer } from "../../mesh/contract/peer-type.ts";
import { type ResourceHandler, takeWhole } from "./resource-handler.ts";

/** The other pods of the app; none before the first list. */
export interface Peers {
  readonly current: readonly PodPeer[];
  onChange(listener: () => void): void;
}

export function createPeersHandler(ownUid: string, log: Logger): ResourceHandler & { readonly peers: Peers } {
  let current: readonly PodPeer[] = [];
  const listeners: (() => void)[] = [];
  return {
    peers: {
      get current() {
        return current;
      },
      onChange: (listener) => void listeners.push(listener),
    },
    take(update, answers) {
      const next = takeWhole(update, answers, PEERS.decode, { log, refused: "peers refused, the last good ones stay" });
      if (next === undefined) return;
      current = next.peers.filter(({ uid }) => uid !== ownUid);
      for (const listener of listeners) listener();
      answers.ack();
    },
  };
}
