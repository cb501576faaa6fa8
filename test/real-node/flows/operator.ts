// What the flows ask of the operator in foo-system.
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import type { World } from "../world.ts";

export const HOME = "foo-system";
/** The label of the operator's pods. */
export const OPERATOR_SELECTOR = "component=foo-operator";
/** Two of the default subset and one canary. */
export const OPERATOR_PODS = 3;
const READY_MS = 120_000;

interface PodState {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly initContainerStatuses?: readonly ContainerState[];
    readonly containerStatuses?: readonly ContainerState[];
  };
}

export interface ContainerState {
  readonly name: string;
  readonly restartCount: number;
  readonly state: { readonly running?: { readonly startedAt: string } };
  readonly lastState: { readonly terminated?: { readonly reason: string } };
}

/** The pod that holds a lock. A lock that was released has no holder for a moment. */
export function leaderOf(world: World, lease: "foo-operator" | "foo-operator---v2" = "foo-operator"): Promise<string> {
  return eventually(async () => {
    const holder = await world.run("get", "lease", lease, "-n", HOME, "-o", "jsonpath={.spec.holderIdentity}");
    return holder !== "" && (holder.split("_")[0] ?? "");
  }, 30_000);
}

/** The sidecar of a pod, as the kubelet reports it. */
export async function sidecarOf(world: World, pod: string): Promise<ContainerState> {
  const { status } = await world.get<PodState>("pod", pod, "-n", HOME);
  const found = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].find(
    ({ name }) => name === "ctrlmesh-proxy",
  );
  if (found === undefined) throw new Error(`pod ${pod} has no sidecar`);
  return found;
}

/** Waits until all pods of the namespace are ready, with containers that have started since then. */
export async function allReady(world: World, namespace: string, sinceMs = 0, withinMs = READY_MS): Promise<void> {
  await eventually(
    async () => {
      const { items } = await world.get<{ items: PodState[] }>("pods", "-n", namespace);
      expect(items.length).toBeGreaterThan(0);
      for (const { metadata, status } of items) {
        const ready = status.conditions?.find(({ type }) => type === "Ready")?.status;
        const running = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap(
          ({ state }) => state.running ?? [],
        );
        const isNew = running.every(({ startedAt }) => Date.parse(startedAt) >= Math.floor(sinceMs / 1000) * 1000);
        expect({ pod: metadata.name, ready, isNew, ends: metadata.deletionTimestamp }).toEqual({
          pod: metadata.name,
          ready: "True",
          isNew: true,
          ends: undefined,
        });
      }
    },
    { withinMs, everyMs: 200 },
  );
}

/** Waits until every proxy enforces the newest route, and no pod has to be restarted. */
export async function converged(world: World): Promise<void> {
  await world.run("wait", "virtualapp/foo-operator", "-n", HOME, "--for=condition=Converged", "--timeout=120s");
}
