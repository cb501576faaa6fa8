// `ctrlmesh status`: the apps, their subsets, what moves and who is waited for.
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { appItem } from "../apps/app-item.ts";
import { appLines, type ShownApp } from "../apps/app-lines.ts";
import { findApp, listApps } from "../apps/apps.ts";
import { clusterState, clustersOf, listMeshClusters } from "../apps/cluster-states.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { ALL_NAMESPACES, accessFlags, clusterOptions, namespaceOf } from "../frame/flags.ts";
import { watchApps } from "./watch-apps.ts";

export const STATUS: Command = {
  name: "status",
  args: "[APP]",
  maxArgs: 1,
  summary: "the apps, their subsets, what moves and who is waited for",
  flags: { ...ALL_NAMESPACES, watch: { type: "boolean", short: "w", help: "look again every 2 s, until Ctrl-C" } },
  async run(call: Call) {
    const { flags, output, clock } = call;
    if (flags.isSet("watch")) return watchApps(call, () => look(call));
    const { apps, where, unseen } = await look(call);
    const access = accessFlags(clusterOptions(flags));
    const lines = apps.flatMap((app, at) => [...(at === 0 ? [] : [""]), ...appLines(app, access, clock.now())]);
    output.data("AppList", { items: apps.map(appItem) }, lines);
    if (unseen !== undefined) output.hint(`other clusters are not shown: ${unseen}`);
    if (apps.length === 0) output.hint(`there is no app ${where}`);
    return EXIT.ok;
  },
};

interface Look {
  readonly apps: readonly ShownApp[];
  /** Where it looked, for a message. */
  readonly where: string;
  /** Why the MeshClusters are not known. */
  readonly unseen?: string;
}

async function look({ args: [name], flags, cluster }: Call): Promise<Look> {
  const connected = await cluster();
  const namespace = flags.isSet("all-namespaces") ? undefined : namespaceOf(flags, connected.namespace);
  const apps = name === undefined ? await listApps(connected, namespace) : [await findApp(connected, name, namespace)];
  const where = namespace === undefined ? "in this cluster" : `in namespace ${namespace}; -A shows all namespaces`;
  try {
    const states = (await listMeshClusters(connected, namespace)).map(clusterState);
    return { apps: apps.map((app) => ({ ...app, clusters: clustersOf(app, states) })), where };
  } catch (error) {
    if (isMeshError(error, "NO_ANSWER") || isMeshError(error, "NOT_LOGGED_IN")) throw error;
    return { apps, where, unseen: errorMessage(error) };
  }
}
