// The desired route table of each app, compiled outside of the reconciles, so that no spec delays them.
// Invariants: equal inputs give the same object, so the plan can reuse its comparisons; an app has one
// compilation at a time. A table is used only if the API server still had the specs after its namespaces were
// seen. Otherwise, after an outage, a new namespace could get an owner by an old spec, because each watch
// returns at another moment.
import { isDeepStrictEqual } from "node:util";
import { type Clock, sleep } from "../../base/clock.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, AppRef, AppSpec, Source } from "./app.ts";
import type { Compile } from "./compile/compiler.ts";
import { namespaceFacts, type RouteSpec } from "./compile/route-spec.ts";
import { createNamespaceLog } from "./namespace-log.ts";
import { createReadBack, type ReadBack, type ReadBackOptions } from "./read-back.ts";

export interface RoutesOptions extends ReadBackOptions {
  readonly source: ReadBackOptions["source"] & Pick<Source, "readsNamespaceLabels">;
  readonly namespaces: Pick<Store<KubeObject>, "get" | "list" | "onChange">;
  readonly compile: Compile;
  /** A compilation has ended for which `tableOf` did not wait. */
  readonly onCompiled: (app: AppRef) => void;
  readonly clock: Clock;
  /** Shared by several tables of an app, so that one list of the specs answers for all of them. Default: one for these namespaces alone. */
  readonly readBack?: ReadBack;
}

/** Bounds what a spec costs: 10,000 namespaces with ordinary rules take half a second. */
export const COMPILE_LIMIT_MS = 10_000;
/** Then a spec beyond the limit is tried again, since there may be fewer namespaces. */
export const RETRY_MS = 600_000;
/** How long a reconcile waits: most compilations end within this time. */
const PATIENCE_MS = 100;

type TableAnswer = RouteTable | "compiling" | "too-costly" | "edited" | "gone";

export type Routes = ReturnType<typeof createRoutes>;

interface Compiled {
  /** Identifies the objects and the parts of them on which the table depends. */
  readonly inputs: string;
  readonly route: RouteSpec;
  /** The number of changes of namespaces that it contains. */
  readonly atChange: number;
  /** As `atChange`, by the count of the ReadBack, which several tables may share. */
  readonly changesSeen: number;
  /** Undefined if it exceeds the limit. */
  readonly table: RouteTable | undefined;
  readonly endedMs: number;
  /** The API server still had this spec after all these changes. */
  isChecked: boolean;
}

export function createRoutes(options: RoutesOptions) {
  const { source, namespaces, compile, onCompiled, clock } = options;
  const compiled = new Map<string, Compiled>();
  /** Aborted if the app is gone, so nobody wants the result. */
  const running = new Map<string, AbortController>();
  const log = createNamespaceLog(source, namespaces);

  const readBack = options.readBack ?? createReadBack(options, () => log.count);
  const inputsOf = ({ objects }: App, more: string) => objects.map(readBack.specOf).join() + more;

  const isCurrent = ({ table, atChange, endedMs }: Compiled) =>
    table === undefined ? clock.monotonicMs() < endedMs + RETRY_MS : atChange === log.count;

  /** What has to be compiled after `last`: what has changed since then, or everything. */
  const workAfter = (last: Compiled | undefined) => {
    const changed = last?.table && log.since(last.atChange);
    if (changed === undefined) return { facts: namespaces.list().map(namespaceFacts), earlier: undefined };
    const objects = [...changed].map((name) => [name, namespaces.get(name)] as const);
    const gone = objects.flatMap(([name, object]) => (object === undefined ? [name] : []));
    const facts = objects.flatMap(([, object]) => (object === undefined ? [] : [namespaceFacts(object)]));
    return { facts, earlier: last?.table && { table: last.table, gone } };
  };

  const run = async (key: string, inputs: string, spec: AppSpec, last: Compiled | undefined) => {
    const ending = new AbortController();
    running.set(key, ending);
    try {
      const [atChange, changesSeen] = [log.count, readBack.changesSeen()];
      const route = last?.route ?? withRulesOf(compiled.get(key)?.route, spec.route());
      const { facts, earlier } = workAfter(last);
      const table = await compile(route, facts, COMPILE_LIMIT_MS, { earlier, signal: ending.signal });
      const isChecked = last?.isChecked === true && last.table === table;
      if (ending.signal.aborted) return;
      compiled.set(key, { inputs, route, atChange, changesSeen, table, endedMs: clock.monotonicMs(), isChecked });
    } finally {
      running.delete(key);
    }
  };

  /** The last compilation of these inputs, if there is one. It may lack changes of the last moments. */
  const entryOf = async (app: App, spec: AppSpec, more: string): Promise<Compiled | undefined> => {
    const [key, inputs] = [formatRequest(app.ref), inputsOf(app, more)];
    const last = () => {
      const entry = compiled.get(key);
      return entry?.inputs === inputs ? entry : undefined;
    };
    const before = last();
    if (running.has(key) || (before !== undefined && isCurrent(before))) return before;
    const work = run(key, inputs, spec, before);
    const hasEnded = await Promise.race([work.then(() => true), sleep(clock, PATIENCE_MS).then(() => false)]);
    if (!hasEnded) {
      const tell = () => onCompiled(app.ref);
      work.then(tell, tell);
    }
    return last();
  };

  return {
    /**
     * The table of the spec. "compiling": `onCompiled` says when to ask again. "too-costly": the compilation
     * takes too long, or the table too much memory. "edited": the API server has a newer spec, which is in
     * the store now. "gone": an object is gone or was created again under its name, which the watch will
     * show.
     * @param more what the route of the spec depends on beside the objects of the app; default nothing
     */
    async tableOf(app: App, spec: AppSpec, signal: AbortSignal, more = ""): Promise<TableAnswer> {
      const entry = await entryOf(app, spec, more);
      if (entry === undefined) return "compiling";
      if (entry.table === undefined) return "too-costly";
      if (entry.isChecked) return entry.table;
      const answer = await readBack.check(app.objects, entry.changesSeen, signal);
      if (answer !== "same") return answer;
      entry.isChecked = true;
      return entry.table;
    },
    forget(app: Request): void {
      compiled.delete(formatRequest(app));
      running.get(formatRequest(app))?.abort();
    },
  };
}

// Tables with one list of rules are compared faster, also after a change of the placement.
function withRulesOf(before: RouteSpec | undefined, route: RouteSpec): RouteSpec {
  if (before === undefined || !isDeepStrictEqual(before.rules, route.rules)) return route;
  const sharedResources = isDeepStrictEqual(before.sharedResources, route.sharedResources)
    ? before.sharedResources
    : route.sharedResources;
  return { ...route, rules: before.rules, sharedResources };
}
