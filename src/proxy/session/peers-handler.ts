// The handler of the resource type "peers": the pods to which this proxy may forward reviews. Invariant: a
// list that cannot be read leaves the last good one. Nothing is stored, since the next stream brings a list.
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { PEERS, type PodPeer } from "../../wire/peer-type.ts";
import { ResourceInvalidError } from "../../wire/resource-type.ts";
import type { ResourceHandler } from "./resource-handler.ts";

/** The other pods of the app; none before the first list. */
export interface Peers {
  readonly current: readonly PodPeer[];
  onChange(listener: () => void): void;
}

export function createPeersHandler(ownUid: string, log: Logger): ResourceHandler & { readonly peers: Peers } {
  let current: readonly PodPeer[] = [];
  const listeners: (() => void)[] = [];
  return {
    capabilities: [],
    peers: {
      get current() {
        return current;
      },
      onChange: (listener) => void listeners.push(listener),
    },
    take({ resource, baseDigest }, answers) {
      if (resource === null) return answers.nack(["resource: missing"]);
      if (baseDigest !== "") return answers.needsWhole();
      try {
        const { peers } = PEERS.decode(resource.body, { version: resource.version, digest: resource.digest });
        current = peers.filter(({ uid }) => uid !== ownUid);
      } catch (error) {
        log.warn({ err: error, version: resource.version }, "peers refused, the last good ones stay");
        return answers.nack(error instanceof ResourceInvalidError ? error.problems : [errorMessage(error)]);
      }
      for (const listener of listeners) listener();
      answers.ack();
    },
  };
}
