// ctrlmesh in this process, with a cluster that is data.
import { createServer } from "node:http";
import { MeshError } from "../../src/base/errors.ts";
import type { Page } from "../../src/base/health-server.ts";
import type { Cluster, Forwarded } from "../../src/cli/frame/cluster.ts";
import type { Screen } from "../../src/cli/frame/output.ts";
import { run } from "../../src/cli/run.ts";
import { objectPath, type Resource } from "../../src/kube/client/resource.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createFakeKubeClient } from "./fake-kube-client.ts";

export interface FakeObject extends KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
}

interface FakePatch {
  readonly path: string;
  readonly patch: object;
  readonly dryRun: boolean;
}

/** @param objects what the cluster has; the command line may be run again after they have changed */
export function startCli(objects: FakeObject[]) {
  const clock = createFakeClock();
  const interrupt = new AbortController();
  /** What the next reads of the cluster throw. */
  let outage: Error | undefined;
  const patches: FakePatch[] = [];
  /** What a patch does to the objects, or throws. */
  const onPatch: { call?: (...args: Parameters<Cluster["patch"]>) => void } = {};
  /** What the API server makes of an object. */
  const creates: { call?: (object: KubeObject) => KubeObject } = {};
  /** What `kubectl apply` makes of an object. */
  const applies: { call?: (...args: Parameters<Cluster["dryRunApply"]>) => KubeObject } = {};
  const files = new Map<string, string>();
  /** The debug pages of the sidecar of each pod. */
  const sidecars = new Map<string, Readonly<Record<string, Page>>>();
  /** What the user may not do: "create clusterroles.rbac.authorization.k8s.io". */
  const denied = new Set<string>();
  /** By path. */
  const answers = new Map<string, unknown>();
  const watchedOnce = Promise.withResolvers<void>();
  /** What the dashboard watches. */
  const watched = createFakeKubeClient();
  const of = (resource: Resource) =>
    objects.filter(({ kind, apiVersion }) => kind === resource.kind && apiVersion.split("/")[0] === (resource.group || "v1"));
  const cluster: Cluster = {
    namespace: "ops",
    async get<T extends KubeObject>(resource: Resource<T>, ref: { namespace?: string; name: string }) {
      const found = of(resource).find(
        ({ metadata }) => metadata.name === ref.name && metadata.namespace === (ref.namespace || undefined),
      );
      if (found === undefined) throw new MeshError("NOT_FOUND", `${objectPath(resource, ref)} not found`);
      return found as unknown as T;
    },
    async list<T extends KubeObject>(resource: Resource<T>, namespace?: string, labelSelector?: string, most?: number) {
      if (outage !== undefined) throw outage;
      const [key = "", value] = labelSelector?.split("=") ?? [];
      const found = of(resource).filter(({ metadata }) => {
        const label = metadata.labels?.[key];
        const isSelected = labelSelector === undefined || (value === undefined ? label !== undefined : label === value);
        return isSelected && (namespace === undefined || metadata.namespace === namespace);
      });
      return found.slice(0, most) as unknown as T[];
    },
    async read(path) {
      const answer = answers.get(path);
      if (answer === undefined) throw new MeshError("NOT_FOUND", `${path} not found`);
      return answer;
    },
    may: async (verb, resource, group) => !denied.has(`${verb} ${resource}.${group}`),
    async patch(resource, ref, patch, dryRun) {
      patches.push({ path: objectPath(resource, ref), patch, dryRun });
      onPatch.call?.(resource, ref, patch, dryRun);
    },
    async dryRunCreate(_, object) {
      const stored = creates.call?.(object);
      if (stored === undefined) throw new MeshError("COMMAND_FAILED", "creating is not allowed here");
      return { object: stored, warnings: [] };
    },
    async dryRunApply(object, serverSideAs) {
      const applied = applies.call?.(object, serverSideAs);
      if (applied === undefined) throw new MeshError("COMMAND_FAILED", "applying is not allowed here");
      return applied;
    },
    async forward({ name }) {
      const pages = sidecars.get(name);
      if (pages === undefined) throw new MeshError("COMMAND_FAILED", `no port of pod ${name} can be reached here`);
      return servePages(pages);
    },
    async watcher() {
      watchedOnce.resolve();
      return { client: watched, close: () => watched.close() };
    },
  };
  return {
    clock,
    patches,
    onPatch,
    creates,
    applies,
    files,
    answers,
    sidecars,
    denied,
    objects,
    /** Ctrl-C. */
    interrupt: () => interrupt.abort(),
    setOutage(error: Error | undefined) {
      outage = error;
    },
    /** The terminal that stdout is. */
    terminal: { screen: undefined as Screen | undefined },
    watched,
    watchedOnce: watchedOnce.promise,
    cluster,
    async run(...argv: string[]) {
      let [stdout, stderr] = ["", ""];
      const streams = {
        out: (text: string) => {
          stdout += text;
        },
        err: (text: string) => {
          stderr += text;
        },
        screen: () => this.terminal.screen,
      };
      const readFile = async (path: string) => files.get(path) ?? "";
      const interrupted = () => interrupt.signal;
      const code = await run(argv, { streams, clock, connect: async () => cluster, readFile, interrupted });
      return { code, stdout, stderr };
    },
  };
}

/** The pages of a sidecar at an address of this machine. */
async function servePages(pages: Readonly<Record<string, Page>>): Promise<Forwarded> {
  const server = createServer(async (req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? "", "http://sidecar");
    const content = await pages[pathname]?.(searchParams, new AbortController().signal);
    const text = typeof content === "string" ? content : JSON.stringify(content);
    res.writeHead(content === undefined ? 404 : 200).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

const START_MS = createFakeClock().now();
const since = (secondsAgo: number) => new Date(START_MS - secondsAgo * 1_000).toISOString();
export const condition = (type: string, status: string, reason: string, message = "", observedGeneration = 3) => ({
  type,
  status,
  reason,
  message,
  observedGeneration,
  lastTransitionTime: since(60),
});

/** An app in which a namespace moves. */
export function movingApp(
  more: object = {},
  conditions: object[] = [
    condition("Ready", "True", "Draining"),
    condition("Converged", "False", "Moving", "1 of 3 proxies enforce route 17"),
  ],
): FakeObject {
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { namespace: "ops", name: "shop", generation: 3 },
    status: {
      proxies: { total: 3, connected: 3, synced: 1 },
      namespaces: { total: 412, moving: 1, held: 0 },
      subsets: [
        { name: "default", namespaces: 388, readyPods: 2, pods: 2, lock: "shop-lock", leader: "shop-0" },
        { name: "canary", namespaces: 24, readyPods: 0, pods: 1, lock: "shop-lock---canary", reason: "SubsetWithoutPods" },
      ],
      handover: {
        from: "default",
        to: "canary",
        phase: "Draining",
        since: since(41),
        namespaces: 1,
        done: 1,
        total: 2,
        waitingOn: [{ namespace: "team-b", pod: "shop-1", reason: "WriteInFlight", since: since(12) }],
      },
      conditions,
      ...more,
    },
  } as unknown as FakeObject;
}

/** A slice of the app `shop`, in which a namespace moves. */
export function movingSlice(more: object = {}): FakeObject {
  const toCanary = [{ subset: "canary", resources: ["deployments.apps", "configmaps"] }, { subset: "default" }];
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "OwnershipSlice",
    metadata: { namespace: "ops", name: "shop-0", labels: { "ctrlmesh.kruise.io/app": "shop" } },
    app: "shop",
    places: 4,
    moving: 1,
    ownership: [
      { state: "Moving", owners: toCanary, from: ["default"], since: since(41), namespaces: ["team-b"] },
      { state: "Owned", owners: [{ subset: "default" }], since: since(18_000), namespaces: ["team-a"], clusterScope: true },
      { state: "Unowned", since: since(90_000), namespaces: ["kube-system"] },
    ],
    ...more,
  } as unknown as FakeObject;
}
