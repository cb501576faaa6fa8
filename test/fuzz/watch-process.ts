// A process of the proxy in the model test of watches: the isolate layer, and what it has stored of its moves.

import type { GroupResource } from "../../src/kube/types.ts";
import type { Handler } from "../../src/proxy/call/call.ts";
import { createMoveLog } from "../../src/proxy/moves/move-log.ts";
import { type IsolateDeps, isolate } from "../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import {
  LOST_MOVES,
  type MovesMemory,
  movesFromContent,
  movesToContent,
  type StoredMoves,
} from "../../src/proxy/session/memory.ts";
import { createReadRoutes } from "../../src/proxy/session/read-routes.ts";
import type { Snapshot } from "../../src/route/snapshot.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { alwaysByNamespace, isolateDeps, oneListOnly } from "../support/isolate.ts";

function contentOf(moves: StoredMoves): StoredMoves {
  return movesFromContent(JSON.parse(JSON.stringify(movesToContent(moves))));
}

export interface ProxyProcess {
  readonly handler: Handler;
  enforce(snapshot: Snapshot): void;
  /** A write of the pod is sent. Returns the function that ends it. */
  beginWrite(namespace: string, target: GroupResource): () => void;
  /** The routes that lists and watches follow are not the newest. */
  readonly isBehind: boolean;
  /** By the routes that lists and watches follow, the subset owns the namespace. */
  shows(namespace: string): boolean;
  /** Stored with the last snapshot. */
  readonly stored: { readonly snapshot: Snapshot; readonly moves: StoredMoves };
  /** From this call on, nothing comes out of it any more. */
  kill(): void;
}

/** What counts, over all processes. */
export type SeenBy = Pick<IsolateDeps, "metrics" | "plans">;

export function startProcess(
  clock: FakeClock,
  seenBy: SeenBy,
  apiServer: Handler,
  movesBefore: StoredMoves | undefined,
  first: Snapshot,
  isByNamespace: boolean,
): ProxyProcess {
  const fail = (error: unknown) => {
    throw error;
  };
  const session = createEnforcer(fail);
  let read: () => StoredMoves = () => LOST_MOVES;
  let isDead = false;
  const memory: MovesMemory = {
    before: movesBefore,
    keep(source) {
      read = source;
    },
    changed() {
      stored = { snapshot: stored.snapshot, moves: contentOf(read()) };
    },
  };
  const reads = createReadRoutes(session, memory, clock, fail);
  const moves = createMoveLog(reads, reads.movesMemory);
  const discovery = { scopeOf: async () => "namespaced" as const };
  const lists = isByNamespace ? { planLists: alwaysByNamespace } : { features: oneListOnly(clock) };
  const deps = isolateDeps({ session, reads, moves, clock, random: () => 0.5, discovery, ...seenBy, ...lists });
  const never = new Promise<never>(() => undefined);
  const layer = isolate(deps)(async (call) => {
    const reply = await apiServer(call);
    return isDead ? never : reply;
  });
  const enforce = (snapshot: Snapshot) => {
    session.enforce(snapshot);
    return { snapshot, moves: contentOf(read()) };
  };
  let stored = enforce(first);
  return {
    handler: layer,
    enforce(snapshot) {
      stored = enforce(snapshot);
    },
    get stored() {
      return stored;
    },
    beginWrite: reads.beginWrite,
    shows: (namespace) => reads.current?.view("", "pods").ownershipOf(namespace) === "own",
    get isBehind() {
      return reads.current !== session.current;
    },
    kill() {
      isDead = true;
    },
  };
}
