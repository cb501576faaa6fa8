// `ctrlmesh status`: the apps, their subsets, what moves and who is waited for.

import { appLines } from "../apps/app-lines.ts";
import { conditionOf, type FoundApp, findApp, isPaused, listApps } from "../apps/apps.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { ALL_NAMESPACES } from "../frame/flags.ts";

export const STATUS: Command = {
  name: "status",
  args: "[APP]",
  summary: "the apps, their subsets, what moves and who is waited for",
  flags: ALL_NAMESPACES,
  async run({ args: [name], flags, output, clock, cluster }: Call) {
    const connected = await cluster();
    const namespace = flags.text("namespace") ?? connected.namespace;
    const inNamespace = flags.isSet("all-namespaces") ? undefined : namespace;
    const apps = name === undefined ? await listApps(connected, inNamespace) : [await findApp(connected, name, namespace)];
    const lines = apps.flatMap((app, at) => [...(at === 0 ? [] : [""]), ...appLines(app, clock.now())]);
    output.data("AppList", { items: apps.map(itemOf) }, lines);
    if (apps.length === 0)
      output.hint(
        `there is no app ${inNamespace === undefined ? "in this cluster" : `in namespace ${inNamespace}; -A shows all namespaces`}`,
      );
    return EXIT.ok;
  },
};

function itemOf(app: FoundApp): object {
  const { kind, object } = app;
  const { namespace, name, generation } = object.metadata;
  const { status, reason, message, observedGeneration } = conditionOf(app, "Ready") ?? {};
  const { subsets = [], handover, restart, proxies, namespaces } = object.status ?? {};
  const ready = { status: status ?? "Unknown", reason, message, isCurrent: observedGeneration === generation };
  return {
    kind: kind.resource.kind,
    namespace,
    name,
    ready,
    paused: isPaused(app),
    proxies,
    namespaces,
    subsets,
    handover,
    restart,
  };
}
