// One proxy's stream, from its opening to its end: feeds the stream machine and carries out its effects on
// the stream and the registry. Invariant: what was written must be read within UNREAD_TIMEOUT_MS, and a proxy
// cannot flood. Called by the mesh server.
import { Metadata, type ServerDuplexStream, status } from "@grpc/grpc-js";
import type { ClientPace } from "../../base/client-pace.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ManagerMessage, ProxyMessage } from "../../wire/messages.ts";
import { type PodKey, podKey } from "../facts/pod-key.ts";
import type { Identify } from "../identity/identify.ts";
import type { Rejections } from "../identity/rejections.ts";
import type { PodIdentity, Verdict } from "../identity/token-reviewer.ts";
import type { Admit } from "./admit-proxy.ts";
import type { ProxyRegistry } from "./proxy-registry.ts";
import type { ProxyStream } from "./proxy-state.ts";
import { exceededBound, registeredPod } from "./registration-bounds.ts";
import type { RegistrationTables } from "./registration-tables.ts";
import {
  MAX_WAIT_MS,
  NO_REGISTRATION,
  type StreamEffect,
  type StreamEvent,
  type StreamFacts,
  type StreamState,
  step,
  turnAway,
} from "./stream-machine.ts";

/** Whether this replica leads, and in which epoch. */
export interface Leadership {
  /** Undefined unless this replica leads at this very moment. Grows with every leader. */
  readonly epoch: number | undefined;
}

export type ServerStream = ServerDuplexStream<ProxyMessage, ManagerMessage>;

export interface ProxyStreamDeps {
  readonly registry: ProxyRegistry;
  /**
   * Undefined while this replica leads; else where the leader is, "" if nobody is known to lead. Default:
   * `admit` alone decides.
   */
  readonly leaderElsewhere?: () => string | undefined;
  /** Identifies the caller, before anything is read. Default: nobody proves anything. */
  readonly identify?: Identify;
  /** Decides about a proxy by the pod that its token is bound to, and then also by its registration. */
  readonly admit: Admit;
  readonly leadership: Leadership;
  /** Told of proxies that have promised to follow a newer leader. */
  readonly rejections?: Rejections;
  /** Of each pod: a proxy that comes back over and over must not keep the manager from the others. */
  readonly registrations: Pick<ClientPace, "allow">;
  readonly tables: RegistrationTables;
  /** Ends the connection of a proxy that reads nothing. */
  readonly cut: (peer: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * A stream that brings no registration or no promise within this time, in milliseconds, ends: it takes a
 * place and is worth nothing.
 */
const REGISTRATION_TIMEOUT_MS = 10_000;
/** How often a proxy that waits is looked at. */
const LOOK_MS = 100;
/**
 * What was written must be read within this time, or the proxy is stuck. Its ACK may take longer: that waits
 * for writes.
 */
const UNREAD_TIMEOUT_MS = 30_000;

/** Serves the stream until its end. */
export function serveProxyStream(stream: ServerStream, deps: ProxyStreamDeps): void {
  const { registry, clock, log, leadership } = deps;
  let state: StreamState = { kind: "registration-due" };
  /** As its registration says; "" before. */
  let pod = "" as PodKey;
  let caller: PodIdentity | undefined;
  const tables = deps.tables.open();
  const isFlood = createFloodGuard(clock);
  const unread = new Set<Timer>();
  let look: Timer | undefined;
  const expectMessage = () =>
    clock.after(REGISTRATION_TIMEOUT_MS, () => end("no registration or promise came", status.DEADLINE_EXCEEDED));
  let due = expectMessage();

  const facts: StreamFacts = {
    nowMs: () => clock.monotonicMs(),
    epoch: () => leadership.epoch,
    admit: (registration) => deps.admit(registration, caller),
    wantedTables: ({ route }, mayWait) => tables.ask(route, mayWait),
    refusal(registration) {
      const key = registeredPod(registration);
      if (key === undefined) return { code: status.INVALID_ARGUMENT, details: NO_REGISTRATION };
      pod = key;
      const details = exceededBound(registration);
      if (details !== undefined) return { code: status.INVALID_ARGUMENT, details };
      // Counted for the caller if its identity is proved. Otherwise a caller that names another pod uses up
      // that pod's registrations.
      if (deps.registrations.allow(caller === undefined ? key : podKey(caller), 1)) return undefined;
      return { code: status.RESOURCE_EXHAUSTED, details: `pod ${key} registers too often` };
    },
  };
  const proxy: ProxyStream = {
    send: (update) => enter({ kind: "send", message: { update } }),
    end: (reason) => end(reason, status.UNAVAILABLE),
  };

  function end(reason: string, code: number): void {
    enter({ kind: "end", code, reason });
  }
  function enter(event: StreamEvent): void {
    apply(step(state, event, facts));
  }
  function apply(next: { readonly state: StreamState; readonly effects: readonly StreamEffect[] }): void {
    state = next.state;
    if (state.kind === "over") release();
    for (const effect of next.effects) carryOut(effect);
  }
  function release(): void {
    due.cancel();
    look?.cancel();
    tables.close();
  }

  function carryOut(effect: StreamEffect): void {
    switch (effect.kind) {
      case "write":
        write(effect.message);
        break;
      case "welcome":
        due.cancel(); // the time starts again: the proxy may have waited for us until now, and a promise with tables is long
        due = expectMessage();
        stream.sendMetadata(new Metadata()); // it tells the proxy that it is served, even if no message follows
        write(effect.message);
        break;
      case "look-later":
        look?.cancel();
        look = clock.after(LOOK_MS, () => enter({ kind: "look" }));
        break;
      case "serve":
        serve(effect);
        break;
      case "deliver":
        deliver(registry, pod, proxy, effect.message);
        break;
      case "newer-epoch":
        deps.rejections?.reject("newer-epoch", pod, effect.message);
        break;
      case "redirect":
        write({ redirect: { endpoint: effect.endpoint } });
        stream.end();
        break;
      case "fail":
        stream.emit("error", { code: effect.code, details: effect.details });
        break;
      case "unregister":
        registry.disconnected(pod, proxy);
        break;
      default:
        effect satisfies never;
    }
  }

  function serve({ registration, epoch, tables: sent, reports }: Extract<StreamEffect, { kind: "serve" }>): void {
    due.cancel();
    tables.take(sent, registration.pod?.namespace ?? "");
    const route = tables.resolve(registration.route);
    tables.close();
    log.info({ pod, version: route.version, epoch }, "proxy connected");
    const { streamNumber, capabilities } = registration;
    registry.connected(pod, { uid: registration.pod?.uid ?? "", streamNumber, capabilities, route }, proxy, epoch);
    for (const report of reports) registry.reported(pod, proxy, report);
  }

  function write(message: ManagerMessage): void {
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

  stream.on("error", () => enter({ kind: "closed" }));
  stream.on("close", () => {
    enter({ kind: "closed" });
    for (const timer of unread) timer.cancel();
  });
  const listen = () => {
    stream.on("data", (message: ProxyMessage) => {
      if (isFlood()) end(`more than ${MAX_MESSAGES} messages in a second`, status.RESOURCE_EXHAUSTED);
      else enter({ kind: "message", message });
    });
    stream.on("end", () => {
      enter({ kind: "closed" });
      stream.end();
    });
  };
  let asked: ReturnType<Identify> | undefined;
  const whoCalls = () => {
    asked ??= deps.identify?.(stream.metadata, stream.getPeer());
    return asked;
  };
  // What a pod sends costs memory before it can be judged, so nothing is read from a pod outside of the mesh.
  const listenTo = (verdict: Verdict, waitedMs: number) => {
    if (state.kind === "over") return;
    if (verdict.kind === "wait") return end(verdict.message, status.UNAVAILABLE);
    if (verdict.kind === "refuse") return end(verdict.message, status.UNAUTHENTICATED);
    caller = verdict.pod;
    const admission = deps.admit(undefined, caller);
    if (admission.kind === "serve") listen();
    else if (admission.kind === "wait" && waitedMs < MAX_WAIT_MS) beginLater(waitedMs);
    else apply(turnAway(state, admission));
  };
  const beginLater = (waitedMs: number) => {
    look = clock.after(LOOK_MS, () => begin(waitedMs + LOOK_MS));
  };
  // A redirect is the same for every caller, so it is sent without reading the registration. That may be
  // long, and flow control stops most of what is not read. While nobody leads, proxies wait here rather than
  // come back hundreds of times a second, and are served as soon as this replica leads.
  const begin = (waitedMs: number) => {
    if (state.kind === "over") return;
    const endpoint = deps.leaderElsewhere?.();
    if (endpoint === undefined) {
      const answer = whoCalls();
      if (answer === undefined) listen();
      else void answer.then((verdict) => listenTo(verdict, waitedMs));
    } else if (endpoint !== "" || waitedMs >= MAX_WAIT_MS) {
      apply(turnAway(state, { kind: "redirect", endpoint }));
    } else {
      void whoCalls(); // starts to identify the caller, which is needed if this replica becomes the leader
      beginLater(waitedMs);
    }
  };
  begin(0);
}

function deliver(registry: ProxyRegistry, pod: PodKey, proxy: ProxyStream, message: ProxyMessage): void {
  if ("ack" in message) registry.acked(pod, proxy, message.ack);
  else if ("nack" in message) registry.nacked(pod, proxy, message.nack);
  else if ("report" in message) registry.reported(pod, proxy, message.report);
  // Anything else is of a newer proxy: ignored, as the contract says.
}

/** In a second. A proxy sends a few messages a minute. */
const MAX_MESSAGES = 500;
const WINDOW_MS = 1_000;

/** Counts a message with each call. True once there are more than MAX_MESSAGES in a second. */
function createFloodGuard(clock: Clock): () => boolean {
  let sinceMs = clock.monotonicMs();
  let messages = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - sinceMs >= WINDOW_MS) [sinceMs, messages] = [nowMs, 0];
    return ++messages > MAX_MESSAGES;
  };
}
