// Compiles an app's route: expressions in another thread, the rest in slices of about SLICE_MS. Invariants:
// all compilations together take at most half of the event loop's time; a compilation ends after its limit,
// or with the next slice if it is no longer wanted.
import type { Clock } from "../../../base/clock.ts";
import { createFairTurns } from "../../../base/fair-turns.ts";
import type { RouteTable } from "../../../mesh/ownership/table.ts";
import { buildTable, type EarlierTable } from "./build-table.ts";
import type { MatchExpressions } from "./expression-matcher.ts";
import type { NamespaceFacts, RouteSpec } from "./route-spec.ts";

/** Of work between two pauses. Leases, streams and probes are served in the pauses. */
const SLICE_MS = 5;

interface CompileOptions {
  readonly earlier?: EarlierTable | undefined;
  readonly signal?: AbortSignal;
}

/**
 * Undefined beyond the limits of time and memory, or if the signal fires.
 * @param namespaces as for `buildTable`
 * @param limitMs of computing
 */
export type Compile = (
  route: RouteSpec,
  namespaces: readonly NamespaceFacts[],
  limitMs: number,
  options?: CompileOptions,
) => Promise<RouteTable | undefined>;

interface CompilerOptions {
  readonly matchExpressions: MatchExpressions;
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
}

export function createCompiler({ matchExpressions, clock }: CompilerOptions): Compile {
  const turns = createFairTurns({ clock });
  let last = 0;
  return async (route, namespaces, limitMs, { earlier, signal } = {}) => {
    const names = namespaces.map(({ name }) => name);
    const matches = await matchExpressions(route.expressions, names, limitMs, signal);
    if (matches === undefined) return undefined;
    const build = buildTable(route, namespaces, matches, earlier);
    const client = String(++last);
    let spentMs = 0;
    const slice = () => {
      if (signal?.aborted) return { done: true, value: undefined };
      const startMs = clock.monotonicMs();
      for (;;) {
        const step = build.next();
        const tookMs = clock.monotonicMs() - startMs;
        if (!step.done && tookMs < SLICE_MS) continue;
        spentMs += tookMs;
        return step;
      }
    };
    for (;;) {
      const { done, value } = await turns.run(client, slice);
      if (done) return value;
      if (spentMs >= limitMs) return undefined;
    }
  };
}
