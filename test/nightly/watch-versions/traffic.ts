// What happens in a cluster while others watch: writes of their own objects, births and deaths of namespaces, moves of namespaces.
import { setTimeout as sleep } from "node:timers/promises";
import { CONFIG_MAPS, NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import type { Mesh } from "../../support/mesh.ts";
import { CLUSTER_ROLE, LABELS } from "./cells.ts";

export const CLUSTER_ROLES = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  resource: "clusterroles",
  kind: "ClusterRole",
  namespaced: false,
} as const;

export interface Traffic {
  /** How often the work was done. */
  readonly turns: number;
  /** Resolves when the work under way is done. @throws the error of a turn */
  stop(): Promise<void>;
}

/** Does the work again and again, and begins each turn this long after the one before, or as soon as that one is done. */
export function repeat(everyMs: number, work: (turn: number) => Promise<void>): Traffic {
  let turns = 0;
  let stopping = false;
  const done = (async () => {
    while (!stopping) {
      const next = sleep(everyMs);
      await work(turns);
      turns++;
      await next;
    }
  })();
  done.catch(() => {}); // stop() reports it
  return {
    get turns() {
      return turns;
    },
    async stop() {
      stopping = true;
      await done;
    },
  };
}

/** Changes objects in each of the namespaces, the namespaces themselves, and a ClusterRole. */
export function ownWrites({ client }: Mesh, namespaces: readonly string[]): Traffic {
  return repeat(100, async (turn) => {
    const namespace = namespaces[turn % namespaces.length] ?? "";
    const body = { metadata: { annotations: { turn: String(turn) } } };
    await client.patch(CONFIG_MAPS, { namespace, name: turn % 2 === 0 ? "a" : "b" }, { type: "merge", body });
    await client.create(CONFIG_MAPS, { metadata: { namespace, name: "brief", labels: LABELS } });
    await client.delete(CONFIG_MAPS, { namespace, name: "brief" });
    if (turn % 5 !== 0) return;
    await client.patch(NAMESPACES, { name: namespace }, { type: "merge", body });
    await client.patch(CLUSTER_ROLES, { name: CLUSTER_ROLE }, { type: "merge", body });
  });
}

/** How many namespaces of birthsAndDeaths exist at a time. */
const ALIVE = 5;

/** Creates five namespaces a second, each with a ConfigMap, and deletes each after a second. No controller runs, so it finalizes them. */
export function birthsAndDeaths(
  { client, createNamespace }: Mesh,
  prefix: string,
  labels: Readonly<Record<string, string>>,
): Traffic {
  return repeat(200, async (turn) => {
    await createNamespace(`${prefix}${turn}`, labels);
    await client.create(CONFIG_MAPS, { metadata: { namespace: `${prefix}${turn}`, name: "a", labels: LABELS } });
    if (turn < ALIVE) return;
    const old = `${prefix}${turn - ALIVE}`;
    await client.delete(CONFIG_MAPS, { namespace: old, name: "a" });
    await removeNamespace(client, old);
  });
}

/** Deletes a namespace that has no objects. */
export async function removeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.delete(NAMESPACES, { name });
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: { finalizers: [] } };
  await client.request({ method: "PUT", path: `/api/v1/namespaces/${name}/finalize`, body });
}

/** Moves the namespaces from one side to the other and back, one every 300 ms, and writes in them. */
export function moves(mesh: Mesh, namespaces: readonly string[], sides: readonly [string, string]): Traffic {
  return repeat(300, async (turn) => {
    const namespace = namespaces[turn % namespaces.length] ?? "";
    const side = sides[Math.floor(turn / namespaces.length + 1) % 2] ?? "";
    await mesh.labelNamespace(namespace, { side });
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace, name: `of-turn-${turn}`, labels: LABELS } });
  });
}
