// A proxy without an operator, a disk or filters: the real client of the manager (connections, registrations, promises,
// redirects, backoff), which acknowledges every snapshot at once. A thousand of them share decoded messages, since the manager is
// under test.
import { systemClock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import type { PodRef } from "../../src/mesh/contract/messages.ts";
import { ROUTE } from "../../src/mesh/contract/route-type.ts";
import { greetingOf } from "../../src/mesh/link/registration.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { ManagerPass } from "../../src/proxy/identity/manager-access.ts";
import { openManagerChannel } from "../../src/proxy/identity/manager-channel.ts";
import { createMeshClient } from "../../src/proxy/session/mesh-client.ts";
import { openMeshStream } from "../../src/proxy/session/mesh-stream.ts";
import { capabilitiesOf, type ResourceHandlers } from "../../src/proxy/session/resource-handler.ts";
import { createSessionMetrics } from "../../src/proxy/session/session-metrics.ts";
import type { SharedWire } from "./shared-wire.ts";
import type { Slots } from "./slots.ts";

/** The Service, which chooses any live replica. */
const SERVICE = "service";
const log = silentLogger();

export interface SimulatedProxy {
  readonly pod: PodRef;
  readonly enforced: Snapshot | undefined;
  readonly isServed: boolean;
  /** The epoch of the newest manager that served the proxy. */
  readonly epoch: number;
  readonly counts: { wholes: number; deltas: number; registrations: number; bytes: number; bytesSaid: number };
  /** The number of snapshots from the leader of each epoch. */
  readonly snapshotsOf: ReadonlyMap<number, number>;
  stop(): void;
}

export interface SimulatedProxyOptions {
  readonly pod: PodRef;
  /** Its token. All proxies of a process share credentials: one TLS context, and a handshake for each connection. */
  readonly pass: ManagerPass;
  /** The service: any replica may answer. Called for each try. */
  readonly endpoints: () => readonly string[];
  readonly wire: SharedWire;
  /** Limits handshakes. Without the limit, proxies disconnect from managers because this busy process reads their responses too late. */
  readonly handshakes: Slots;
  readonly onChange: (proxy: SimulatedProxy) => void;
}

export function startSimulatedProxy(options: SimulatedProxyOptions): SimulatedProxy {
  const { pod, pass, endpoints, wire, handshakes, onChange } = options;
  const counts = { wholes: 0, deltas: 0, registrations: 0, bytes: 0, bytesSaid: 0 };
  const snapshotsOf = new Map<number, number>();
  const stop = new AbortController();
  let current: Snapshot | undefined;
  let isServed = false;
  let epoch = 0;
  let streamNumber = systemClock.now();
  let endHandshake: () => void = () => undefined;

  const proxy: SimulatedProxy = {
    pod,
    counts,
    snapshotsOf,
    get enforced() {
      return current;
    },
    get isServed() {
      return isServed;
    },
    get epoch() {
      return epoch;
    },
    stop: () => stop.abort(),
  };
  const enforce = (snapshot: Snapshot) => {
    current = snapshot;
    snapshotsOf.set(epoch, (snapshotsOf.get(epoch) ?? 0) + 1);
    onChange(proxy);
  };
  const handlers: ResourceHandlers = {
    [ROUTE.name]: {
      capabilities: ["freeze", "routes-delta", "cluster-objects", "cluster-servers"],
      take({ resource, baseDigest }, answers) {
        if (resource === null) return answers.nack(["resource: missing"]);
        counts[baseDigest === "" ? "wholes" : "deltas"]++;
        if (baseDigest !== "" && current?.digest !== baseDigest) return answers.needsWhole();
        enforce(wire.snapshot(resource, baseDigest === "" ? undefined : current));
        answers.ack();
      },
    },
  };
  const metrics = createSessionMetrics(new Registry());
  const { managerConnected } = metrics;
  const client = createMeshClient({
    manager: SERVICE,
    access: {
      async pass() {
        endHandshake = await handshakes.take();
        return pass;
      },
    },
    handlers,
    reports: () => [],
    async registration() {
      counts.registrations++;
      const facts = {
        pod,
        proxyVersion: "simulated",
        streamNumber: ++streamNumber,
        epoch,
        capabilities: capabilitiesOf(handlers),
        version: current?.version ?? 0,
        claims: { acknowledged: current, inDoubt: [], mayHoldMore: false },
      };
      return greetingOf(facts);
    },
    async promise(to) {
      if (to < epoch) return false;
      epoch = to;
      isServed = true;
      onChange(proxy);
      return true;
    },
    metrics: {
      ...metrics,
      managerConnected: Object.assign(managerConnected, {
        set(value: number) {
          isServed &&= value > 0;
          onChange(proxy);
        },
      }),
    },
    clock: systemClock,
    random: Math.random,
    log,
    network: {
      connect: (endpoint, to) => openManagerChannel(endpoint === SERVICE ? anyOf(endpoints()) : endpoint, to),
      open(how) {
        const end = endHandshake;
        const opened = openMeshStream({
          ...how,
          method: wire.method(counts),
          onReachable() {
            end();
            how.onReachable();
          },
        });
        void opened.ended.then(end);
        return opened;
      },
    },
  });
  // Like pods, they do not all start in the same millisecond.
  systemClock.after(Math.random() * 200, () => void client.run(stop.signal));
  return proxy;
}

function anyOf(endpoints: readonly string[]): string {
  return endpoints[Math.floor(Math.random() * endpoints.length)] ?? "127.0.0.1:1";
}
