// A process of the proxy in the model test of watches: the routes' core, the isolate layer, and what it has stored of its moves.

import { runMachine } from "../../src/base/machine.ts";
import type { GroupResource } from "../../src/kube/types.ts";
import { NO_ROUTES, type RoutesEffect, type RoutesEvent, stepRoutes } from "../../src/mesh/link/proxy-routes.ts";
import { createMoveLog } from "../../src/mesh/moves/move-log.ts";
import { LOST_MOVES, movesFromContent, movesToContent, type StoredMoves } from "../../src/mesh/moves/stored-moves.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { Handler } from "../../src/proxy/call/call.ts";
import { type IsolateDeps, isolate } from "../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { countingLast, createLastWrites } from "../../src/proxy/session/last-writes.ts";
import { whenShown } from "../../src/proxy/session/when-shown.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { alwaysByNamespace, isolateDeps, oneListOnly } from "../support/isolate.ts";

export interface ProxyProcess {
  readonly handler: Handler;
  enforce(snapshot: Snapshot): void;
  /** A write of the pod is sent. Returns the function that ends it. */
  beginWrite(namespace: string, target: GroupResource): () => void;
  /** The pod has lost the namespace, and is shown it until it has seen its own writes. */
  retains(namespace: string): boolean;
  /** What the next process finds. */
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
  const lastWrites = createLastWrites(clock);
  let read: () => StoredMoves = () => LOST_MOVES;
  let isDead = false;
  let updates = 0;
  let stored = { snapshot: first, moves: movesBefore ?? LOST_MOVES };
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
  // A disk that stores at once, and does not fail.
  const carryOut = (effect: RoutesEffect) => {
    switch (effect.kind) {
      case "mark-unstored":
        stored = { ...stored, moves: LOST_MOVES };
        return;
      case "enforce":
        return session.enforce(effect.routes);
      case "relabel":
        return session.relabel(effect.routes);
      case "drain":
        return session.whenDrained(() => machine.enter({ kind: "drained" }));
      case "store": {
        const shown = effect.isAllShown ? movesFromContent(JSON.parse(JSON.stringify(movesToContent(read())))) : LOST_MOVES;
        stored = { snapshot: effect.routes, moves: shown };
        return machine.enter({ kind: "stored", isStored: true });
      }
      case "show-own-writes":
        whenShown(
          () => session.renewals,
          effect,
          () => machine.enter({ kind: "own-writes-shown" }),
          clock,
        );
        return;
      default:
        return;
    }
  };
  const machine = runMachine(NO_ROUTES, (state, event: RoutesEvent) => stepRoutes(state, event, clock.monotonicMs()), carryOut);
  const enforce = (routes: Snapshot) => machine.enter({ kind: "update", update: ++updates, routes, written: lastWrites.places });
  if (movesBefore === undefined) enforce(first);
  else machine.enter({ kind: "started", stored: first, inheritsWrites: false });
  return {
    handler: layer,
    enforce,
    beginWrite: countingLast(lastWrites, session.beginWrite),
    retains: (namespace) =>
      machine.state.retaining?.routes.table.retained?.some(({ namespaces }) => namespaces.has(namespace)) ?? false,
    get stored() {
      return stored;
    },
    kill() {
      isDead = true;
    },
  };
}
