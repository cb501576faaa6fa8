// One proxy's stream, from its registration to its end, turned into calls of the registry. Invariants: a stream says nothing before its registration,
// is told only about its own pod, and is ended at the first message out of order; nothing is sent on it by a replica that leads no
// more, and what a registration says counts only once the proxy has promised to follow no older leader. Called by the snapshot server.
import { Metadata, type ServerDuplexStream, status } from "@grpc/grpc-js";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ManagerMessage, ProxyMessage, RegistrationMessage, ReportMessage } from "../../wire/messages.ts";
import { podKey } from "../facts/pod-key.ts";
import type { Identify } from "../identity/identify.ts";
import type { PodIdentity, Verdict } from "../identity/token-reviewer.ts";
import type { ProxyRegistry } from "./proxy-registry.ts";
import type { ProxyStream } from "./proxy-state.ts";
import type { RegistrationLimit } from "./registration-limit.ts";
import type { RegistrationTables } from "./registration-tables.ts";
import type { SnapshotEncoder } from "./snapshot-encoder.ts";

/** Who may be served now. */
export type Admission =
  | { readonly kind: "serve" }
  /** This replica does not lead; `endpoint` is "" while nobody is known to. */
  | { readonly kind: "redirect"; readonly endpoint: string }
  /** Not yet: the proxy shall come back. */
  | { readonly kind: "wait"; readonly message: string }
  | { readonly kind: "refuse"; readonly message: string };

/** Whether this replica leads, and since which change of the leader. */
export interface Leadership {
  /** Undefined unless this replica leads at this very moment. Grows with every leader. */
  readonly epoch: number | undefined;
  /** A proxy follows a leader of this epoch, which is higher than ours. */
  sawEpoch(epoch: number): void;
}

/** As it is written: what is sent to many is encoded already. */
export type MeshStream = ServerDuplexStream<ProxyMessage, ManagerMessage | Buffer>;

export interface ProxyStreamDeps {
  readonly registry: ProxyRegistry;
  /** Undefined while this replica leads; else where the leader is, "" if nobody is known to lead. Default: `admit` alone says so. */
  readonly leaderElsewhere?: () => string | undefined;
  /** Says who calls, before anything is read. Default: nobody asks. */
  readonly identify?: Identify;
  /** Decides about a proxy by its registration, and by the pod that its token is bound to. */
  readonly admit: (registration: RegistrationMessage, caller?: PodIdentity) => Admission;
  readonly leadership: Leadership;
  readonly encoder: SnapshotEncoder;
  readonly registrations: RegistrationLimit;
  readonly tables: RegistrationTables;
  /** Ends the connection of a proxy that reads nothing. */
  readonly cut: (peer: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

// A stream that says nothing, or promises nothing, holds a place and is worth nothing.
const REGISTRATION_TIMEOUT_MS = 10_000;
// Less than a proxy waits for an answer.
const PARK_MS = 5_000;
const LOOK_MS = 250;
/** What was written must be read within this time, or the proxy is stuck. Its ACK may take longer: that waits for writes. */
const UNREAD_TIMEOUT_MS = 30_000;
// A proxy says a few things a minute.
const MAX_MESSAGES = 500;
const MESSAGES_WINDOW_MS = 1_000;
// It goes into lines of the log, into answers and into a map.
const MAX_NAME_CHARS = 253;
// A proxy tells five at most. Tables are named by hash: a short registration could tell a million, and each is a claim to be planned with.
const MAX_IN_DOUBT = 15;

type Phase =
  /** Said nothing yet. */
  | { readonly kind: "registration-due" }
  /** It cannot be judged yet, or a table of its registration is being told by another proxy. */
  | { readonly kind: "waits"; readonly registration: RegistrationMessage }
  /** Welcomed. */
  | { readonly kind: "promise-due"; readonly registration: RegistrationMessage; readonly epoch: number }
  | { readonly kind: "served"; readonly pod: string; readonly epoch: number }
  | { readonly kind: "over" };

/** Serves the stream until its end. */
export function serveProxyStream(stream: MeshStream, deps: ProxyStreamDeps): void {
  const { registry, clock, log, leadership } = deps;
  let phase: Phase = { kind: "registration-due" };
  /** As its registration says; "" before. */
  let pod = "";
  let greetedMs = 0;
  const unread = new Set<Timer>();
  let parked: Timer | undefined;
  let caller: PodIdentity | undefined;
  /** Reported before it was served. */
  let report: ReportMessage | undefined;
  const isOver = () => phase.kind === "over";
  const isFlood = floodGuard(clock);
  const tables = deps.tables.open(() => enter(() => (phase.kind === "waits" ? welcome(phase.registration) : phase)));
  const expectIt = () =>
    clock.after(REGISTRATION_TIMEOUT_MS, () => fail(stream, status.DEADLINE_EXCEEDED, "no registration or promise came"));
  let due = expectIt();

  const proxy: ProxyStream = {
    send(snapshot, nonce, delta) {
      if (phase.kind !== "served") return;
      // A process that was stopped wakes up here as well as anywhere: the lease is asked, not what was believed a moment ago.
      if (leadership.epoch !== phase.epoch) fail(stream, status.UNAVAILABLE, "this replica leads no more");
      else write(delta === undefined ? deps.encoder.snapshot(snapshot, nonce) : deps.encoder.delta(delta, nonce));
    },
    end: (reason) => fail(stream, status.UNAVAILABLE, reason),
  };

  function write(message: ManagerMessage | Buffer): void {
    const timer = clock.after(UNREAD_TIMEOUT_MS, () => {
      log.warn({ pod, peer: stream.getPeer() }, "proxy reads nothing, its connection is cut");
      deps.cut(stream.getPeer());
    });
    unread.add(timer);
    stream.write(message, () => {
      timer.cancel();
      unread.delete(timer);
    });
  }

  function greet(registration: RegistrationMessage): Phase {
    const key = podOf(registration);
    if (key === undefined) return refuse(status.INVALID_ARGUMENT, "the first message must be a registration that names the pod");
    pod = key;
    if (registration.inDoubt.length > MAX_IN_DOUBT)
      return refuse(
        status.INVALID_ARGUMENT,
        `a registration tells at most ${MAX_IN_DOUBT} snapshots in doubt, not ${registration.inDoubt.length}`,
      );
    // By who calls, where that is proved: else whoever names another's pod uses up that pod's registrations.
    if (!deps.registrations.allow(caller === undefined ? key : podKey(caller)))
      return refuse(status.RESOURCE_EXHAUSTED, `pod ${key} registers too often`);
    greetedMs = clock.monotonicMs();
    return welcome(registration);
  }

  function park(registration: RegistrationMessage): Phase {
    parked?.cancel();
    parked = clock.after(LOOK_MS, () => enter(() => welcome(registration)));
    return { kind: "waits", registration };
  }

  function welcome(registration: RegistrationMessage): Phase {
    const mayWait = clock.monotonicMs() - greetedMs < PARK_MS;
    const admission = deps.admit(registration, caller);
    if (admission.kind === "wait" && mayWait) return park(registration);
    if (admission.kind !== "serve") return turnAway(admission);
    const { epoch } = leadership;
    if (epoch === undefined) return refuse(status.UNAVAILABLE, "this replica leads no more");
    const { epoch: promised = 0, takesEpochs = false } = registration;
    if (promised > epoch) {
      leadership.sawEpoch(promised);
      return refuse(status.UNAVAILABLE, `the proxy follows a newer leader: epoch ${promised}, not ${epoch}`);
    }
    const wantedTables = takesEpochs ? tables.ask(registration, mayWait) : [];
    if (wantedTables === undefined) return park(registration);
    parked?.cancel();
    stream.sendMetadata(new Metadata()); // tells the proxy that it is served, also when there is nothing to send it
    if (!takesEpochs) return serve(registration, epoch);
    due.cancel(); // it may have waited for us until now, and a promise with tables is long
    due = expectIt();
    write({ welcome: { epoch, wantedTables } });
    return { kind: "promise-due", registration, epoch };
  }

  function serve(told: RegistrationMessage, epoch: number): Phase {
    due.cancel();
    const registration = tables.resolve(told);
    tables.close();
    log.info({ pod, version: registration.version, epoch }, "proxy connected");
    phase = { kind: "served", pod, epoch };
    registry.connected(pod, registration, proxy, epoch);
    if (report !== undefined) registry.reported(pod, proxy, report);
    return phase;
  }

  function turnAway(admission: Exclude<Admission, { kind: "serve" }>): Phase {
    if (admission.kind === "refuse") return refuse(status.PERMISSION_DENIED, admission.message);
    if (admission.kind === "wait") return refuse(status.UNAVAILABLE, admission.message);
    if (admission.endpoint === "") return refuse(status.UNAVAILABLE, "no replica leads yet");
    due.cancel();
    write({ redirect: { endpoint: admission.endpoint } });
    stream.end();
    return { kind: "over" };
  }

  function refuse(code: number, details: string): Phase {
    due.cancel();
    fail(stream, code, details);
    return { kind: "over" };
  }

  function next(now: Phase, message: ProxyMessage): Phase {
    switch (now.kind) {
      // Registration due => Waits, Promise due, Served if the proxy knows no epochs, or Over if it is turned away
      case "registration-due":
        if (!("registration" in message))
          return refuse(status.INVALID_ARGUMENT, "the first message must be a registration that names the pod");
        return greet(message.registration);
      // Waits => as from Registration due, by time, or by what others tell, and by no message
      case "waits":
        if ("report" in message) report = message.report;
        return now;
      // Promise due => Served, if what let it in still holds
      case "promise-due": {
        if ("report" in message) report = message.report;
        if (!("promise" in message)) return now;
        const admission = deps.admit(now.registration, caller);
        if (admission.kind !== "serve") return turnAway(admission);
        if (message.promise.epoch !== now.epoch || leadership.epoch !== now.epoch) {
          return refuse(status.UNAVAILABLE, "this replica leads no more");
        }
        tables.take(message.promise.tables ?? []);
        return serve(now.registration, now.epoch);
      }
      case "served":
        takeMessage(registry, now.pod, proxy, message);
        return phase;
      case "over":
        return now;
      default:
        return now satisfies never;
    }
  }

  function enter(nextPhase: () => Phase): void {
    if (isOver()) return;
    const after = nextPhase();
    if (!isOver()) phase = after; // else the stream was ended meanwhile
  }

  const close = () => {
    due.cancel();
    parked?.cancel();
    const last = phase;
    phase = { kind: "over" };
    tables.close();
    if (last.kind === "served") registry.disconnected(last.pod, proxy);
  };
  stream.on("error", close);
  stream.on("close", () => {
    close();
    for (const timer of unread) timer.cancel();
  });
  const listen = () => {
    stream.on("data", (message: ProxyMessage) => {
      if (isOver()) return;
      if (isFlood()) {
        fail(stream, status.RESOURCE_EXHAUSTED, `more than ${MAX_MESSAGES} messages in a second`);
        return;
      }
      enter(() => next(phase, message));
    });
    stream.on("end", () => {
      close();
      stream.end();
    });
  };
  let asked: ReturnType<Identify> | undefined;
  const whoCalls = () => {
    asked ??= deps.identify?.(stream.metadata, stream.getPeer());
    return asked;
  };
  const listenTo = (verdict: Verdict): Phase => {
    if (verdict.kind === "wait") return refuse(status.UNAVAILABLE, verdict.message);
    if (verdict.kind === "refuse") return refuse(status.UNAUTHENTICATED, verdict.message);
    caller = verdict.pod;
    listen();
    return phase;
  };
  // Where to go does not depend on who asks, and a registration may be long: what is not read is hardly sent. While nobody leads, proxies
  // wait here rather than come back hundreds of times a second, and are served the moment when this replica does.
  const begin = (waitedMs: number) => {
    if (isOver()) return;
    const endpoint = deps.leaderElsewhere?.();
    if (endpoint === undefined) {
      const answer = whoCalls();
      if (answer === undefined) listen();
      else void answer.then((verdict) => enter(() => listenTo(verdict)));
    } else if (endpoint !== "" || waitedMs >= PARK_MS) {
      phase = turnAway({ kind: "redirect", endpoint });
    } else {
      void whoCalls(); // it will have to be known
      parked = clock.after(LOOK_MS, () => begin(waitedMs + LOOK_MS));
    }
  };
  begin(0);
}

function takeMessage(registry: ProxyRegistry, pod: string, proxy: ProxyStream, message: ProxyMessage): void {
  if ("ack" in message) registry.acked(pod, proxy, message.ack.nonce);
  else if ("nack" in message) registry.nacked(pod, proxy, message.nack);
  else if ("report" in message) registry.reported(pod, proxy, message.report);
  else if ("registration" in message) proxy.end("a stream has one registration");
  // Anything else is of a newer proxy: ignored, as the contract says.
}

function podOf({ pod }: RegistrationMessage): string | undefined {
  if (pod === null || pod.name === "") return undefined;
  return [pod.name, pod.namespace].every((name) => name.length <= MAX_NAME_CHARS) ? podKey(pod) : undefined;
}

function floodGuard(clock: Clock): () => boolean {
  let sinceMs = clock.monotonicMs();
  let messages = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - sinceMs >= MESSAGES_WINDOW_MS) [sinceMs, messages] = [nowMs, 0];
    return ++messages > MAX_MESSAGES;
  };
}

function fail(stream: MeshStream, code: number, details: string): void {
  stream.emit("error", { code, details });
}
