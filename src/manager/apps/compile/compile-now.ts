// Compiles a route at once, in this thread and without a limit of time: for a command line and for tests, whose specs are their own.
import { RE2JS } from "re2js";
import type { RouteTable } from "../../../mesh/ownership/table.ts";
import { buildTable } from "./build-table.ts";
import type { Matches, NamespaceFacts, RouteSpec } from "./route-spec.ts";

export function compileNow(route: RouteSpec, namespaces: readonly NamespaceFacts[]): RouteTable {
  const compiled = new Map(route.expressions.map((expression) => [expression, RE2JS.compile(expression)]));
  const matches: Matches = (expression, name) => compiled.get(expression)?.matcher(name).find() ?? false;
  const build = buildTable(route, namespaces, matches);
  for (;;) {
    const step = build.next();
    if (!step.done) continue;
    if (step.value === undefined) throw new RangeError("the route is not cheap");
    return step.value;
  }
}
