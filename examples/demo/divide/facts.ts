// Reads the present state of the act: namespaces and their owners, locks, and the VirtualApp's status.
import { VIRTUAL_APPS } from "../../../src/api/resources.ts";
import { LEASES, NAMESPACES } from "../../../src/kube/client/resources.ts";
import { FOOS } from "../manifests.ts";
import type { World } from "../world.ts";
import type { DemoApp } from "./app.ts";
import type { Facts } from "./view.ts";

export async function lookAt({ client }: World, app: DemoApp): Promise<Facts> {
  const { namespace, appName } = app.setting;
  const [foos, namespaces, leases, virtualApp] = await Promise.all([
    client.list(FOOS),
    client.list(NAMESPACES),
    client.list(LEASES, { namespace }),
    client.get(VIRTUAL_APPS, { namespace, name: appName }),
  ]);
  const ownerOf = app.ownersOf(namespaces.items);
  const waits = virtualApp.status?.handover?.waitingOn ?? [];
  const condition = (type: string) => virtualApp.status?.conditions?.find((one) => one.type === type);
  const converged = condition("Converged");
  const served = Map.groupBy(foos.items, ({ metadata }) => metadata.namespace ?? "");
  return {
    app: {
      name: appName,
      ready: condition("Ready")?.status ?? "Unknown",
      converged: converged?.status === "True",
      message: converged?.message ?? "",
    },
    namespaces: [...served]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, own]) => ({
        namespace: name,
        subset: ownerOf(name),
        moving: waits.some((wait) => wait.namespace === name),
        reconciledBy: [...new Set(own.flatMap(({ status }) => status?.reconciledBy ?? []))].sort(),
        count: own.reduce((sum, { status }) => sum + (status?.count ?? 0), 0),
      })),
    locks: leases.items
      .map(({ metadata, spec }) => ({ lock: metadata.name ?? "", leader: (spec?.holderIdentity ?? "").split("_")[0] ?? "" }))
      .sort((a, b) => (a.lock < b.lock ? -1 : 1)),
  };
}
