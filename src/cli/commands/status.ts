// `ctrlmesh status`: the apps, their subsets, what moves and who is waited for.
import { appLines } from "../apps/app-lines.ts";
import { conditionOf, type FoundApp, findApp, frozenIn, listApps, pausedObjects } from "../apps/apps.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { ALL_NAMESPACES, accessFlags, clusterOptions, namespaceOf } from "../frame/flags.ts";

export const STATUS: Command = {
  name: "status",
  args: "[APP]",
  maxArgs: 1,
  summary: "the apps, their subsets, what moves and who is waited for",
  flags: ALL_NAMESPACES,
  async run({ args: [name], flags, output, clock, cluster }: Call) {
    const connected = await cluster();
    const namespace = flags.isSet("all-namespaces") ? undefined : namespaceOf(flags, connected.namespace);
    const apps = name === undefined ? await listApps(connected, namespace) : [await findApp(connected, name, namespace)];
    const access = accessFlags(clusterOptions(flags));
    const lines = apps.flatMap((app, at) => [...(at === 0 ? [] : [""]), ...appLines(app, access, clock.now())]);
    output.data("AppList", { items: apps.map(itemOf) }, lines);
    const where = namespace === undefined ? "in this cluster" : `in namespace ${namespace}; -A shows all namespaces`;
    if (apps.length === 0) output.hint(`there is no app ${where}`);
    return EXIT.ok;
  },
};

function itemOf(app: FoundApp): object {
  const { kind, name, namespace, object, unread } = app;
  const { status, reason, message, observedGeneration } = conditionOf(app, "Ready") ?? {};
  const { subsets = [], handover, restart, proxies, namespaces } = app.status ?? {};
  const ready = { status: status ?? "Unknown", reason, message, isCurrent: observedGeneration === object.metadata.generation };
  const paused = pausedObjects(app).length > 0;
  const frozen = frozenIn(app).map(({ namespace: place, reason: why }) => ({ namespace: place, reason: why }));
  return {
    kind: kind.resource.kind,
    namespace,
    name,
    ready,
    paused,
    frozen,
    proxies,
    namespaces,
    subsets,
    handover,
    restart,
    unread,
  };
}
