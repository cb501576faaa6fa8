// One proxy of the model: the real enforcer and snapshot intake and the real message bytes, with a disk, a stream and writes
// that a script drives. Invariant: messages of one stream keep their order; what is not yet delivered can be lost, never changed.
import type { Clock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import type { ProxyRegistry, ProxyStream } from "../../src/manager/snapshot-server/proxy-registry.ts";
import type { Admission } from "../../src/manager/snapshot-server/snapshot-server.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { helloOf } from "../../src/proxy/session/hello.ts";
import { createSessionMetrics } from "../../src/proxy/session/session-metrics.ts";
import { createSnapshotIntake } from "../../src/proxy/session/snapshot-intake.ts";
import { hasOwnLabels, type Snapshot } from "../../src/route/snapshot.ts";
import { loadMeshService } from "../../src/wire/load-proto.ts";
import type { HelloMessage, ManagerMessage, PodRef, ProxyMessage, SnapshotMessage } from "../../src/wire/messages.ts";
import { snapshotToWire } from "../../src/wire/snapshot-codec.ts";
import { createModelDisk } from "./mesh-disk.ts";

const log = silentLogger();
const metrics = createSessionMetrics(new Registry());
const { Connect: METHOD } = loadMeshService();

/** What of the manager a proxy can reach. */
export interface ManagerEnd {
  readonly registry: ProxyRegistry;
  readonly admit: (hello: HelloMessage) => Admission;
}

export interface ModelProxyOptions {
  readonly pod: PodRef;
  /** The manager that answers now. */
  readonly manager: () => ManagerEnd;
  readonly clock: Clock;
  /** Called when what the kubelet would report has changed. */
  readonly onState: () => void;
}

interface Link {
  readonly manager: ManagerEnd;
  readonly stream: ProxyStream;
  /** Sent by the manager, oldest first, not yet taken. */
  readonly down: SnapshotMessage[];
  /** The manager has taken the hello and not noticed an end. */
  served: boolean;
}

/** By what right a subset acts on an object. */
export type Right = "alone" | "shared";

interface Write {
  readonly subset: string;
  readonly right: Right;
  readonly namespace: string;
  readonly resource: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly end: () => void;
}

export type ModelProxy = ReturnType<typeof createModelProxy>;

export function createModelProxy({ pod, manager, clock, onState }: ModelProxyOptions) {
  const key = `${pod.namespace}/${pod.name}`;
  const disk = createModelDisk();
  const nacks: string[] = [];
  const up: { readonly link: Link; readonly message: ProxyMessage | "end" }[] = [];
  let session = startSession();
  let link: Link | undefined;
  let writes: Write[] = [];
  let alive = true;
  let restarts = 0;
  let refusal = "";

  function startSession() {
    const enforcer = createEnforcer();
    const stop = new AbortController();
    const intake = createSnapshotIntake({ pod, enforcer, file: disk.file, metrics, clock, log, signal: stop.signal });
    return { enforcer, intake, stop };
  }

  const hello = (): HelloMessage => {
    const { enforcer, intake } = session;
    return helloOf({ pod, proxyVersion: "", version: enforcer.current?.snapshot.version ?? 0, held: intake.held });
  };

  // Both sides notice at once, and everything on the way is lost.
  const cut = (which: Link) => {
    for (let at = up.length - 1; at >= 0; at--) if (up[at]?.link === which) up.splice(at, 1);
    which.down.length = 0;
    if (link === which) link = undefined;
    if (!which.served) return;
    which.served = false;
    which.manager.registry.disconnected(key, which.stream);
  };
  const openLink = (to: ManagerEnd): Link => {
    const opened: Link = {
      manager: to,
      down: [],
      served: false,
      stream: {
        send: (snapshot: Snapshot, nonce) => {
          if (link === opened) opened.down.push(onWireDown({ snapshot: snapshotToWire(snapshot, nonce) }));
        },
        end: () => cut(opened),
      },
    };
    return opened;
  };
  const takeMessage = (from: Link, message: ProxyMessage | "end") => {
    const { registry, admit } = from.manager;
    if (message === "end") cut(from);
    else if ("hello" in message) {
      const admission = admit(message.hello);
      refusal = admission.kind === "refuse" ? admission.message : "";
      if (admission.kind !== "serve") return cut(from);
      from.served = true;
      registry.connected(key, message.hello, from.stream);
    } else if ("ack" in message) registry.acked(key, from.stream, message.ack.nonce);
    else if ("nack" in message) registry.nacked(key, from.stream, message.nack);
  };
  const isMine = (namespace: string, resource: string, labels: Readonly<Record<string, string>>) => {
    const view = session.enforcer.current?.view("", resource);
    return view?.standing(namespace) === "mine" && hasOwnLabels(view, labels);
  };
  const rightIn = (namespace: string, resource: string): Right =>
    session.enforcer.current?.view("", resource).ownerOf(namespace).kind === "everyone" ? "shared" : "alone";

  return {
    name: pod.name,
    /** What it refused, newest last. */
    nacks,
    get current() {
      return session.enforcer.current?.snapshot;
    },
    /** Why the manager does not serve it. */
    get refusal() {
      return refusal;
    },
    get restarts() {
      return restarts;
    },
    get isConnected() {
      return link?.served ?? false;
    },
    /** Something is on its way on its streams. */
    get isBusy() {
      return up.length > 0 || (link?.down.length ?? 0) > 0;
    },
    /** The stream is another manager's than the one that answers now. */
    get isAstray() {
      return link !== undefined && link.manager !== manager();
    },
    /** Opens a stream and says hello; nothing if there is a stream. */
    connect() {
      if (link !== undefined || !alive) return;
      link = openLink(manager());
      up.push({ link, message: onWireUp({ hello: hello() }) });
    },
    /** Ends the stream from the proxy's side: what it has said before still arrives. */
    hangUp() {
      if (link === undefined) return;
      link.down.length = 0;
      up.push({ link, message: "end" });
      link = undefined;
    },
    /** The network breaks. */
    cut() {
      for (const which of new Set([...up.map((entry) => entry.link), ...(link === undefined ? [] : [link])])) cut(which);
    },
    /** Takes the oldest message of the manager. */
    async deliver() {
      const from = link;
      const message = from?.down.shift();
      if (from === undefined || message === undefined) return;
      const before = session.enforcer.current?.snapshot;
      const hadNone = before === undefined;
      const answer = (said: ProxyMessage) => {
        if (link === from) up.push({ link: from, message: onWireUp(said) });
      };
      session.intake.take(message, {
        ack: (nonce, version) => answer({ ack: { nonce, version } }),
        nack: (nonce, version, problems) => {
          nacks.push(problems.join("; "));
          answer({ nack: { nonce, version, problems } });
        },
      });
      const now = session.enforcer.current?.snapshot;
      if (before?.subset === now?.subset && before && !showsNothing(before) && now && showsNothing(now))
        throw new Error(`${pod.name} is to show nothing of what it had`);
      if (hadNone && now !== undefined) onState();
      await flush();
    },
    /** The newest message of the manager is refused, as by a proxy that does not know a rule. */
    refuse(problem: string) {
      const message = link?.down.pop();
      if (link === undefined || message === undefined) throw new Error(`nothing is on its way to ${pod.name}`);
      const { nonce, version } = message;
      up.push({ link, message: onWireUp({ nack: { nonce, version, problems: [problem] } }) });
    },
    /** The manager takes the proxy's oldest message. */
    answer() {
      const entry = up.shift();
      if (entry !== undefined) takeMessage(entry.link, entry.message);
    },
    /** The process ends and starts again. @param stored what was being stored has reached the disk */
    async restart(stored: boolean) {
      if (!alive) return;
      this.hangUp();
      session.stop.abort();
      writes = [];
      restarts++;
      disk.crash(stored);
      session = startSession();
      await session.intake.restore();
      onState();
    },
    /** While the disk does not work, what is to be stored waits. */
    async setDiskWorks(works: boolean) {
      disk.works = works;
      await flush();
    },
    /** Begins a write if it is let through. */
    beginWrite(namespace: string, resource: string, labels: Readonly<Record<string, string>> = {}) {
      if (!alive || !isMine(namespace, resource, labels)) return;
      const subset = session.enforcer.current?.snapshot.subset ?? "";
      writes.push({
        subset,
        right: rightIn(namespace, resource),
        namespace,
        resource,
        labels,
        end: session.enforcer.beginWrite(namespace, { group: "", resource }),
      });
    },
    async endWrites() {
      const ending = writes;
      writes = [];
      for (const { end } of ending) end();
      await flush();
    },
    /** As which subsets, and by what right, it may act on the resource in the namespace: by what it enforces, and by writes from before. */
    holds(namespace: string, resource: string, labels: Readonly<Record<string, string>> = {}): ReadonlyMap<string, Right> {
      const { current } = session.enforcer;
      if (!alive || current === undefined) return new Map();
      if (isMine(namespace, resource, labels)) return new Map([[current.snapshot.subset, rightIn(namespace, resource)]]);
      const isOf = (row: Write) => row.namespace === namespace && row.resource === resource && row.labels.tier === labels.tier;
      return new Map(writes.filter(isOf).map((row) => [row.subset, row.right]));
    },
    /** The pod is gone. */
    kill() {
      this.cut();
      session.stop.abort();
      alive = false;
    },
  };
}

// Where nothing is known of others, and only there: informers would believe that all is deleted.
function showsNothing({ table }: Snapshot): boolean {
  return table.rules.some((rule) => rule.kind === "fence" && rule.because === "unreported");
}

// The bytes that would pass, so that what the contract does not carry is lost here too.
function onWireUp(message: ProxyMessage): ProxyMessage {
  if (METHOD === undefined) throw new Error("the contract has no method Connect");
  return METHOD.requestDeserialize(METHOD.requestSerialize(message)) as ProxyMessage;
}

function onWireDown(message: ManagerMessage): SnapshotMessage {
  if (METHOD === undefined) throw new Error("the contract has no method Connect");
  const read = METHOD.responseDeserialize(METHOD.responseSerialize(message)) as ManagerMessage;
  if (!("snapshot" in read)) throw new Error("a snapshot came out as something else");
  return read.snapshot;
}

// Node empties the whole microtask queue before it runs an immediate.
function flush(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
