// Compiles a route at once, in this thread: for specs that are known to be cheap, as those of the demo and of tests are.
import { RE2JS } from "re2js";
import { buildTable } from "../../src/manager/apps/compile/build-table.ts";
import type { Matches, NamespaceFacts, RouteSpec } from "../../src/manager/apps/compile/route-spec.ts";
import type { RouteTable } from "../../src/mesh/ownership/table.ts";

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
