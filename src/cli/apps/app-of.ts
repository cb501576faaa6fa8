// The app that a command line names, in the cluster of its flags.
import type { Cluster } from "../frame/cluster.ts";
import type { Call } from "../frame/command.ts";
import { namespaceOf } from "../frame/flags.ts";
import { type FoundApp, findApp } from "./apps.ts";

export async function appOf({
  args: [name],
  flags,
  cluster,
}: Call): Promise<{ readonly cluster: Cluster; readonly app: FoundApp }> {
  const connected = await cluster();
  return { cluster: connected, app: await findApp(connected, name, namespaceOf(flags, connected.namespace)) };
}
