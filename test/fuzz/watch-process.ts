// A process of the proxy in the model test of watches: the isolate layer, and what it has stored of its moves.

import { createMoveLog } from "../../src/mesh/moves/move-log.ts";
import { LOST_MOVES, movesFromContent, movesToContent, type StoredMoves } from "../../src/mesh/moves/stored-moves.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { Handler } from "../../src/proxy/call/call.ts";
import { type IsolateDeps, isolate } from "../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { alwaysByNamespace, isolateDeps, oneListOnly } from "../support/isolate.ts";

export interface ProxyProcess {
  readonly handler: Handler;
  enforce(snapshot: Snapshot): void;
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
  const session = createEnforcer((error) => {
    throw error;
  });
  let read: () => StoredMoves = () => LOST_MOVES;
  let isDead = false;
  const moves = createMoveLog(session, {
    before: movesBefore,
    keep(source) {
      read = source;
    },
  });
  const discovery = { scopeOf: async () => "namespaced" as const };
  const lists = isByNamespace ? { planLists: alwaysByNamespace } : { features: oneListOnly(clock) };
  const deps = isolateDeps({ session, clock, random: () => 0.5, discovery, moves, ...seenBy, ...lists });
  const never = new Promise<never>(() => undefined);
  const layer = isolate(deps)(async (call) => {
    const reply = await apiServer(call);
    return isDead ? never : reply;
  });
  const enforce = (snapshot: Snapshot) => {
    session.enforce(snapshot);
    return { snapshot, moves: movesFromContent(JSON.parse(JSON.stringify(movesToContent(read())))) };
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
    kill() {
      isDead = true;
    },
  };
}
