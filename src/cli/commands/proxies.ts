// `ctrlmesh proxies`: which routes each sidecar enforces, beside those that the manager has published.
import { z } from "zod";
import { askSidecarsOf } from "../apps/app-sidecars.ts";
import { findApp } from "../apps/apps.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { columns } from "../frame/output.ts";

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
  async run({ args: [name], flags, output, cluster }: Call) {
    const connected = await cluster();
    const app = await findApp(connected, name, namespaceOf(flags, connected.namespace));
    const newest = app.status?.routeVersion;
    const asked = await askSidecarsOf(connected, [app], { path: "/debug/snapshot", schema: ANSWER }, output);
    const items = asked.map(({ pod, answer, problem }) => ({
      pod,
      subset: answer?.subset,
      version: answer?.version,
      digest: answer?.digest,
      namespaces: answer?.namespaces?.total,
      fenced: answer?.fenced?.total,
      retained: answer?.retained?.total,
      problem,
    }));
    const rows = items.map(({ pod, subset = "-", version = "-", namespaces = "-", fenced = "-", retained = "-", problem }) => [
      ...[pod, subset, `${version}`, `${namespaces}`, `${fenced}`, `${retained}`],
      problem ?? (version === "-" ? "it has no routes yet" : ""),
    ]);
    const head = ["POD", "SUBSET", "ROUTE", "NAMESPACES", "FENCED", "RETAINED", ""];
    output.data("ProxyList", { newest, items }, [
      `the newest routes are ${newest ?? "not known"}`,
      ...columns([head, ...rows]).map((line) => line.trimEnd()),
    ]);
    output.hint("a pod whose routes have not changed keeps their number");
    return items.some(({ problem }) => problem === undefined) ? EXIT.ok : EXIT.failed;
  },
};
