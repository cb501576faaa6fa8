// `ctrlmesh proxies`: which routes each sidecar enforces, beside those that the manager has published.
import { z } from "zod";
import { appOf } from "../apps/app-of.ts";
import { askSidecarsOf } from "../apps/app-sidecars.ts";
import { type Call, type Command, failure } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { printTable } from "../frame/table.ts";

const COUNT = z.object({ total: z.number() });
/** Without routes, the page has nothing but `snapshot: null`. */
const ANSWER = z.looseObject({
  version: z.number().optional(),
  digest: z.string().optional(),
  subset: z.string().optional(),
  namespaces: COUNT.optional(),
  fenced: COUNT.optional(),
  retained: COUNT.optional(),
});

export const PROXIES: Command = {
  name: "proxies",
  args: "APP",
  maxArgs: 1,
  summary: "which routes each sidecar enforces, beside the newest",
  flags: {},
  async run(call: Call) {
    const { output } = call;
    const { cluster, app } = await appOf(call);
    const newest = app.status?.routeVersion;
    const asked = await askSidecarsOf(cluster, [app], { path: "/debug/snapshot", schema: ANSWER }, output);
    const items = asked.map(({ pod, answer = {}, problem }) => ({
      pod,
      subset: answer.subset,
      version: answer.version,
      digest: answer.digest,
      namespaces: answer.namespaces?.total,
      fenced: answer.fenced?.total,
      retained: answer.retained?.total,
      problem: problem ?? (answer.version === undefined ? "it has no routes yet" : undefined),
    }));
    printTable(output, {
      kind: "ProxyList",
      items,
      fields: { newest },
      title: [`the newest routes are ${newest ?? "not known"}`],
      columns: {
        POD: ({ pod }) => pod,
        SUBSET: ({ subset }) => subset,
        ROUTE: ({ version }) => version,
        "IN ROUTE": ({ namespaces }) => namespaces,
        FENCED: ({ fenced }) => fenced,
        RETAINED: ({ retained }) => retained,
        "": ({ problem }) => problem ?? "",
      },
      ifNone: "",
    });
    output.hint("a pod whose routes have not changed keeps their number");
    if (asked.every(({ answer }) => answer === undefined)) throw failure("no sidecar has answered");
    return EXIT.ok;
  },
};
