// One proxy of the model: the real enforcer and route handler, and what mesh-client does with a stream, with a disk, streams and
// writes that a script drives. Of a stream that it has left, what was said still arrives; what comes on it is not heard any more.
import type { Clock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import type { ManagerMessage, PodRef, ProxyMessage, UpdateMessage } from "../../src/mesh/contract/messages.ts";
import { ROUTE } from "../../src/mesh/contract/route-type.ts";
import { INHERITED_WRITES_MS } from "../../src/mesh/link/proxy-routes.ts";
import { type Greeting, greetingOf } from "../../src/mesh/link/registration.ts";
import { hasOwnLabels, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { countingLast, createLastWrites } from "../../src/proxy/session/last-writes.ts";
import { answersTo } from "../../src/proxy/session/mesh-dialog.ts";
import { type Answers, capabilitiesOf } from "../../src/proxy/session/resource-handler.ts";
import { createRouteHandler } from "../../src/proxy/session/route-handler.ts";
import { createSessionMetrics } from "../../src/proxy/session/session-metrics.ts";
import { flush } from "./mesh-clock.ts";
import { createModelDisk, type DiskState, type Remains } from "./mesh-disk.ts";
import type { ModelManager } from "./mesh-manager.ts";
import type { ModelStream } from "./mesh-stream.ts";

const log = silentLogger();
const metrics = createSessionMetrics(new Registry());

export interface ModelProxyOptions {
  readonly pod: PodRef;
  readonly clock: Clock;
  /** Called when what the kubelet would report has changed. */
  readonly onState: () => void;
}

interface Link {
  readonly manager: ModelManager;
  readonly stream: ModelStream;
  readonly greeting: Greeting;
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

export function createModelProxy({ pod, clock, onState }: ModelProxyOptions) {
  const disk = createModelDisk(pod);
  const nacks: string[] = [];
  /** Streams that it has left and of which something has not arrived, oldest first. */
  let left: Link[] = [];
  let link: Link | undefined;
  let writes: readonly Write[] = [];
  let alive = true;
  let restarts = 0;
  let leader = false;
  let isForgetful = false;
  /** So that it has been taken to hold anything, and kept from what is its own. */
  let hasForgotten = false;
  let session = startSession();

  function startSession() {
    const enforcer = createEnforcer();
    const stop = new AbortController();
    const lastWrites = createLastWrites(clock);
    const routeHandler = createRouteHandler({
      pod,
      enforcer,
      lastWrites,
      file: disk.file,
      metrics,
      clock,
      log,
      signal: stop.signal,
    });
    return { enforcer, lastWrites, routeHandler, stop, streams: disk.openStreams(clock.now) };
  }

  const answersOn = (on: Link, update: UpdateMessage): Answers => {
    const send = (message: ProxyMessage) => {
      if (link === on) on.stream.say(message);
    };
    const answers = answersTo(update, { send });
    return {
      ...answers,
      nack(problems) {
        nacks.push(problems.join("; "));
        answers.nack(problems);
      },
    };
  };
  const leave = () => {
    if (link === undefined) return;
    link.stream.hangUp();
    left.push(link);
    link = undefined;
  };
  const take = async (from: Link, message: ManagerMessage | "end") => {
    if (message === "end" || "redirect" in message) leave();
    else if ("welcome" in message) {
      const { epoch, wantedTables } = message.welcome;
      hasForgotten ||= isForgetful && wantedTables.length > 0;
      const tables = isForgetful ? [] : from.greeting.tablesFor(wantedTables);
      if (await session.streams.promise(epoch)) from.stream.say({ promise: { epoch, tables } });
      else leave();
    } else session.routeHandler.take(message.update, answersOn(from, message.update));
  };
  const isMine = (namespace: string, resource: string, labels: Readonly<Record<string, string>>) => {
    const view = session.enforcer.current?.view("", resource);
    return view?.ownershipOf(namespace) === "own" && hasOwnLabels(view, labels);
  };
  const rightIn = (namespace: string, resource: string): Right =>
    session.enforcer.current?.view("", resource).ownerOf(namespace).kind === "everyone" ? "shared" : "alone";

  /** What has become public meanwhile, everybody may write: a write from before is no other than those that begin now. */
  const shared = (row: Write): Write =>
    isMine(row.namespace, row.resource, row.labels) && rightIn(row.namespace, row.resource) === "shared"
      ? { ...row, right: "shared" }
      : row;

  return {
    name: pod.name,
    uid: pod.uid,
    /** What it refused, newest last. */
    nacks,
    get current() {
      return session.enforcer.current?.snapshot;
    },
    /** What it enforces, compiled: another object whenever that changes. */
    get enforced() {
      return session.enforcer.current;
    },
    get writes() {
      return writes;
    },
    get restarts() {
      return restarts;
    },
    /** It has promised something to some manager, and has not lost that. */
    get hasPromised() {
      return session.streams.epoch > 0;
    },
    /** Whose stream it has. */
    get manager() {
      return link?.manager;
    },
    /** Something is on its way on its streams. */
    get isBusy() {
      return left.length > 0 || (link?.stream.up.length ?? 0) > 0 || (link?.stream.down.length ?? 0) > 0;
    },
    /** Opens a stream and registers; nothing if there is a stream. */
    async connect(to: ModelManager) {
      if (link !== undefined || !alive) return;
      const { enforcer, routeHandler, streams } = session;
      const streamNumber = await streams.next();
      const version = enforcer.current?.snapshot.version ?? 0;
      const { epoch } = streams;
      const capabilities = capabilitiesOf({ [ROUTE.name]: routeHandler });
      const greeting = greetingOf({
        pod,
        proxyVersion: "",
        capabilities,
        streamNumber,
        epoch,
        version,
        claims: routeHandler.claims,
      });
      const opened: Link = { manager: to, stream: to.open(), greeting };
      link = opened;
      opened.stream.say({ registration: greeting.registration });
      if (leader) this.report(leader);
    },
    report(isLeader: boolean) {
      leader = isLeader;
      const { heldNamespaces, drainingWrites } = session.enforcer;
      link?.stream.say({ report: { leader } });
      link?.stream.say({ report: { backlog: { heldNamespaces, drainingWrites } } });
    },
    /** Ends the stream from the proxy's side: what it has said before still arrives. */
    hangUp: leave,
    /** The network breaks. */
    cut() {
      for (const each of [...left, ...(link === undefined ? [] : [link])]) each.stream.cut();
      left = [];
      link = undefined;
    },
    /** Takes the oldest message of the manager. */
    async deliver(again = false) {
      const from = link;
      const message = from?.stream.take(again);
      if (from === undefined || message === undefined) return;
      const before = session.enforcer.current?.snapshot;
      await take(from, message);
      const now = session.enforcer.current?.snapshot;
      const isSame = before?.subset === now?.subset && !hasForgotten;
      if (isSame && before && !showsNothing(before) && now && showsNothing(now))
        throw new Error(`${pod.name} is to show nothing of what it had`);
      if (before === undefined && now !== undefined) onState();
      if (before !== now && writes.length > 0) writes = writes.map(shared);
      await flush();
    },
    /** The newest message of the manager is refused, as by a proxy that does not know a rule. */
    refuse(problem: string) {
      const message = link?.stream.take(false);
      if (link === undefined || message === undefined || message === "end")
        throw new Error(`nothing is on its way to ${pod.name}`);
      if (!("update" in message)) throw new Error(`what is on its way to ${pod.name} is no update`);
      const { stream } = link;
      answersTo(message.update, { send: (answer) => stream.say(answer) }).nack([problem]);
    },
    /**
     * A manager takes a message of the proxy: the oldest of its newest stream, or of the oldest of those that it has left.
     * @param again the message is delivered once more later
     */
    answer(newestFirst = false, again = false) {
      const from = newestFirst && link !== undefined && link.stream.up.length > 0 ? link : (left[0] ?? link);
      if (from === undefined || from.stream.up.length === 0) return;
      from.stream.arrive(again && from.stream.up[0] !== undefined);
      left = left.filter(({ stream }) => stream.up.length > 0);
    },
    /** The process ends and starts again. */
    async restart(remains: Remains) {
      if (!alive) return;
      leave();
      const { acknowledged, inDoubt } = session.routeHandler.claims;
      const had = new Set([acknowledged?.digest, ...inDoubt.map(({ digest }) => digest)]);
      session.stop.abort();
      // Writes of a process that was killed may still be carried out. Who has lost the whole disk as well knows nothing of them.
      const endsLate = () => undefined;
      writes = remains === "none" ? [] : writes.map((row) => ({ ...row, end: endsLate }));
      if (writes.length > 0)
        clock.after(INHERITED_WRITES_MS, () => {
          writes = writes.filter(({ end }) => end !== endsLate);
        });
      const endedCleanly = writes.length === 0;
      leader = false;
      restarts++;
      disk.crash(remains);
      session = startSession();
      await session.routeHandler.restore(endedCleanly, session.streams.hasPromised);
      const now = session.enforcer.current?.snapshot;
      if (now !== undefined && !had.has(now.digest))
        throw new Error(`${pod.name} has something after its restart that it had not before`);
      onState();
    },
    /** It promises, and does not tell the tables that it was asked for. */
    set forgetsTables(is: boolean) {
      isForgetful = is;
    },
    /** While the disk does not work, what is to be stored waits. */
    async setDisk(state: DiskState) {
      disk.state = state;
      await flush();
    },
    /** Begins a write if it is let through. */
    beginWrite(namespace: string, resource: string, labels: Readonly<Record<string, string>> = {}) {
      if (!alive || !isMine(namespace, resource, labels)) return;
      const subset = session.enforcer.current?.snapshot.subset ?? "";
      const right = rightIn(namespace, resource);
      const end = countingLast(session.lastWrites, session.enforcer.beginWrite)(namespace, { group: "", resource });
      writes = [...writes, { subset, right, namespace, resource, labels, end }];
    },
    async endWrites() {
      if (writes.length === 0) return;
      const ending = writes;
      writes = [];
      for (const { end } of ending) end();
      await flush();
    },
    /** As which subsets, and by what right, it may act on the resource in the namespace: by what it enforces, and by writes from before. */
    holds(namespace: string, resource: string, labels: Readonly<Record<string, string>> = {}): ReadonlyMap<string, Right> {
      const { current } = session.enforcer;
      if (!alive || current === undefined) return new Map();
      const isOf = (row: Write) => row.namespace === namespace && row.resource === resource && row.labels.tier === labels.tier;
      if (isMine(namespace, resource, labels)) return new Map([[current.snapshot.subset, rightIn(namespace, resource)]]);
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
