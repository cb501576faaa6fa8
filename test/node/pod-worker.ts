// One pod on the node, from its start to its end: network, volumes, init containers and sidecars in order, and the containers. At
// the end SIGTERM goes to the containers first, then to the sidecars in reverse order. When `end` has resolved, only the pod's
// object still exists.
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { createContainer, type RecordEvent, type RunningContainer } from "./container.ts";
import type { EnvSources, KeyedObjects } from "./container-env.ts";
import { createDeadline, type Deadline } from "./deadline.ts";
import type { HostsFile } from "./hosts-file.ts";
import { NODE_ADDRESS, type PodNetwork } from "./network.ts";
import { bindsOf, writePodFiles } from "./pod-files.ts";
import { podStatus } from "./pod-status.ts";
import { type Container, isSidecar, type NodePod, type PodStatus, podName } from "./pod-types.ts";
import { pause } from "./probes.ts";
import { createPodTokens } from "./service-account-tokens.ts";
import type { TestImage } from "./test-image.ts";
import { createPodVolumes } from "./volumes.ts";

/** The parts that the pods of a node share. */
export interface NodeContext {
  readonly client: KubeClient;
  /** The agent's folder for volumes and roots, in memory. */
  readonly stateDir: string;
  readonly logDir: string;
  readonly hidden: readonly string[];
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly apiService: EnvSources["apiService"];
  addNetwork(): Promise<PodNetwork>;
  image(name: string): TestImage | undefined;
  /** ConfigMaps and Secrets of a namespace. */
  objects(namespace: string): KeyedObjects;
  /** The /etc/hosts lines of the Services, for a namespace. */
  hosts(namespace: string): readonly string[];
  event(pod: NodePod, ...event: Parameters<RecordEvent>): void;
  /** Called when the pod's status has changed. */
  onChange(worker: PodWorker): void;
}

export interface PodWorker {
  readonly pod: NodePod;
  readonly containers: readonly RunningContainer[];
  readonly isEnding: boolean;
  /** The address in the pod network, once there is one. */
  readonly podIP: string;
  status(): PodStatus;
  /** The object has changed. */
  update(pod: NodePod): void;
  /** ConfigMaps, Secrets or tokens may have changed. */
  refresh(): Promise<void>;
  /** Services have changed. */
  refreshHosts(): void;
  /** Ends the pod within the grace time. Later calls may shorten the time, like a second deletion. */
  end(graceMs: number): Promise<void>;
}

const VOLUME_RETRY_MS = 250;

export function startPodWorker(first: NodePod, context: NodeContext): PodWorker {
  let pod = first;
  const { namespace = "", name = "", uid = "" } = pod.metadata;
  const { initContainers = [], containers: appContainers, restartPolicy = "Always" } = pod.spec;
  const dir = join(context.stateDir, uid);
  const startTime = nowInSeconds();
  const ending = new AbortController();
  const containers = new Map<string, RunningContainer>();
  const tokens = createPodTokens(context.client, pod);
  const addresses = { podIP: "", hostIP: NODE_ADDRESS, nodeName: pod.spec.nodeName ?? "" };
  const event: RecordEvent = (...args) => context.event(pod, ...args);
  let network: PodNetwork | undefined;
  let hosts: HostsFile | undefined;
  const etcDir = join(dir, "etc");
  const volumes = createPodVolumes(pod, join(dir, "volumes"), {
    ...context.objects(namespace),
    addresses,
    token: (audience, seconds) => tokens.get(audience, seconds),
  });
  let running: Promise<void> = Promise.resolve();
  let ended: Promise<void> = Promise.resolve();
  let deadline: Deadline | undefined;
  let syncing: Promise<void> = Promise.resolve();

  const create = (container: Container): RunningContainer => {
    const made = createContainer({
      pod,
      container,
      restartsAfter: (code) => restartsAfter(container, code),
      env: { ...context.objects(namespace), addresses, apiService: context.apiService },
      image: context.image,
      binds: (image) => bindsOf(container, image, etcDir, volumes),
      runDir: (run) => join(dir, "roots", `${container.name}-${run}`),
      network: network?.namespace ?? "/proc/self/ns/net",
      hidden: context.hidden,
      logFile: join(context.logDir, `${namespace}_${name}_${uid}`, `${container.name}.log`),
      backoffMs: context.backoffMs,
      maxBackoffMs: context.maxBackoffMs,
      event,
      onChange: changed,
    });
    containers.set(container.name, made);
    return made;
  };

  function restartsAfter(container: Container, code: number): boolean {
    if (isSidecar(container)) return true;
    const isInit = initContainers.includes(container);
    if (restartPolicy === "Never") return false;
    return restartPolicy === "Always" && !isInit ? true : code !== 0;
  }

  async function makeSandbox(): Promise<void> {
    if (pod.spec.hostNetwork) addresses.podIP = NODE_ADDRESS;
    else {
      network = await context.addNetwork();
      addresses.podIP = network.address;
    }
    hosts = writePodFiles(etcDir, pod, addresses.podIP);
    hosts.write(context.hosts(namespace));
  }

  async function mountVolumes(): Promise<void> {
    while (!ending.signal.aborted) {
      const error = await volumes.sync(pod).then(
        () => undefined,
        (cause: Error) => cause,
      );
      if (error === undefined) return;
      event("Warning", "FailedMount", error.message);
      await pause(VOLUME_RETRY_MS, ending.signal);
    }
  }

  async function run(): Promise<void> {
    const { signal } = ending;
    changed();
    await makeSandbox();
    await mountVolumes();
    for (const container of initContainers) {
      if (signal.aborted) return;
      const init = create(container);
      init.start();
      if (isSidecar(container)) await Promise.race([init.started, aborted(signal)]);
      else if ((await Promise.race([init.finished, aborted(signal)])) !== 0) return finish();
    }
    if (signal.aborted) return;
    const apps = appContainers.map(create);
    for (const app of apps) app.start();
    await Promise.race([Promise.all(apps.map((app) => app.finished)), aborted(signal)]);
    await finish();
  }

  // Ends the sidecars when the containers have ended by themselves.
  async function finish(): Promise<void> {
    if (ending.signal.aborted) return;
    await stopAll(createDeadline(graceOf(pod)));
    await network?.remove();
    changed();
  }

  // No container starts again. The sidecars end in reverse order, after the containers.
  async function stopAll(deadline: Deadline): Promise<void> {
    const stop = (these: readonly Container[], turn: Promise<unknown>) =>
      Promise.all(these.map((each) => containers.get(each.name)?.stop(deadline, turn)));
    let before: Promise<unknown> = stop(appContainers, Promise.resolve());
    const all = [
      before,
      stop(
        initContainers.filter((each) => !isSidecar(each)),
        Promise.resolve(),
      ),
    ];
    for (const sidecar of initContainers.filter(isSidecar).reverse()) {
      before = stop([sidecar], before);
      all.push(before);
    }
    await Promise.all(all);
  }

  const self: PodWorker = {
    get pod() {
      return pod;
    },
    get containers() {
      return [...containers.values()];
    },
    get isEnding() {
      return ending.signal.aborted;
    },
    get podIP() {
      return addresses.podIP;
    },
    status: () => {
      const statuses = new Map([...containers].map(([key, container]) => [key, container.status]));
      const { podIP, hostIP } = addresses;
      return podStatus(pod, { statuses, podIP, hostIP, startTime, isEnding: ending.signal.aborted }, nowInSeconds());
    },
    update(next) {
      pod = next;
    },
    refresh() {
      syncing = syncing.then(async () => {
        if (ending.signal.aborted || containers.size === 0) return;
        await volumes.sync(pod).catch((error: Error) => event("Warning", "FailedMount", error.message));
      });
      return syncing;
    },
    refreshHosts: () => hosts?.write(context.hosts(namespace)),
    end(graceMs) {
      if (deadline !== undefined) deadline.shorten(graceMs);
      else {
        deadline = createDeadline(graceMs);
        ended = end(deadline);
      }
      return ended;
    },
  };

  async function end(within: Deadline): Promise<void> {
    ending.abort();
    await stopAll(within);
    await running.catch(() => {});
    await syncing;
    await volumes.remove();
    await network?.remove().catch(() => {}); // already removed if the containers had ended by themselves
    rmSync(dir, { recursive: true, force: true });
  }

  function changed(): void {
    context.onChange(self);
  }

  running = run().catch((error: Error) => {
    event("Warning", "FailedCreatePodSandBox", error.message);
    process.stderr.write(`[test node] ${podName(pod)}: ${error.stack}\n`);
  });
  return self;
}

function graceOf({ spec }: NodePod): number {
  return 1000 * (spec.terminationGracePeriodSeconds ?? 30);
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

// The time has the API's precision. With more digits the written value would never equal the read one.
function nowInSeconds(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}
