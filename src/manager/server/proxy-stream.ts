// One proxy's stream: feeds the stream machine and carries out its effects. Invariants: nothing is read from
// a caller outside of the mesh; what was written must be read within UNREAD_TIMEOUT_MS; a proxy cannot flood.
import { Metadata, type ServerDuplexStream, status } from "@grpc/grpc-js";
import type { ClientPace } from "../../base/client-pace.ts";
import type { Timer } from "../../base/clock.ts";
import type { FairTurns } from "../../base/fair-turns.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { ManagerMessage, ProxyMessage } from "../../mesh/contract/messages.ts";
import { type PodKey, podKey } from "../../mesh/handover/proxy-facts.ts";
import {
  NO_REGISTRATION,
  type StreamEffect,
  type StreamEvent,
  type StreamFacts,
  type StreamState,
  type StreamStatus,
  stepStream,
  turnAway,
} from "../../mesh/link/manager-stream.ts";
import type { Identify } from "../identity/identify.ts";
import type { Rejections } from "../identity/rejections.ts";
import type { PodIdentity } from "../identity/token-reviewer.ts";
import { admitCaller, LOOK_MS } from "./admit-caller.ts";
import { createFloodGuard, MAX_MESSAGES } from "./flood-guard.ts";
import { exceededBound, type JudgeProxy, registeredPod } from "./judge-proxy.ts";
import type { ProxyRegistry, ProxyStream } from "./proxy-registry.ts";
import type { RegistrationTables } from "./registration-tables.ts";

export interface Leadership {
  /** Undefined unless this replica leads at this very moment. Grows with every leader. */
  readonly epoch: number | undefined;
}

export type ServerStream = ServerDuplexStream<ProxyMessage, ManagerMessage>;

export interface ProxyStreamDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly registry: ProxyRegistry;
  /** See {@link JudgeOptions}. Default: `judge` alone decides. */
  readonly leaderElsewhere?: () => string | undefined;
  /** Default: nobody proves anything. */
  readonly identify?: Identify;
  readonly judge: JudgeProxy;
  readonly leadership: Leadership;
  readonly rejections?: Rejections;
  /** By pod: a proxy that comes back over and over must not delay the others. */
  readonly registrations: Pick<ClientPace, "allow">;
  readonly tables: RegistrationTables;
  /** For work that blocks the event loop, by pod. */
  readonly turns: Pick<FairTurns, "run">;
  readonly cut: (peer: string) => void;
}

const REGISTRATION_TIMEOUT_MS = 10_000;
/** A proxy must read each message within this time. Its ACK may take longer, since it waits for writes. */
const UNREAD_TIMEOUT_MS = 30_000;

export function serveProxyStream(stream: ServerStream, deps: ProxyStreamDeps): void {
  const { registry, clock, log, leadership } = deps;
  let state: StreamState = { kind: "registration-due" };
  /** The key that the registration names; "" before it. */
  let pod = "" as PodKey;
  let caller: PodIdentity | undefined;
  const tables = deps.tables.open();
  const isFlood = createFloodGuard(clock);
  const unread = new Set<Timer>();
  let look: Timer | undefined;
  let due = expectMessage();

  const facts: StreamFacts = {
    nowMs: () => clock.monotonicMs(),
    epoch: () => leadership.epoch,
    judge: (registration) => deps.judge(registration, caller),
    wantedTables: ({ route }, mayWait) => tables.ask(route, mayWait),
    refusal(registration) {
      const key = registeredPod(registration);
      if (key === undefined) return { status: "INVALID_ARGUMENT", details: NO_REGISTRATION };
      pod = key;
      const details = exceededBound(registration);
      if (details !== undefined) return { status: "INVALID_ARGUMENT", details };
      // Counted for a proved caller: one that names another pod must not use up that pod's registrations.
      if (deps.registrations.allow(caller === undefined ? key : podKey(caller), 1)) return undefined;
      return { status: "RESOURCE_EXHAUSTED", details: `pod ${key} registers too often` };
    },
  };
  const proxy: ProxyStream = {
    send: (update) => enter({ kind: "send", message: { update } }),
    end: (reason) => end(reason, "UNAVAILABLE"),
  };

  const isOver = () => state.kind === "over";
  function expectMessage(): Timer {
    return clock.after(REGISTRATION_TIMEOUT_MS, () => end("no registration or promise came", "DEADLINE_EXCEEDED"));
  }
  function lookLater(run: () => void): void {
    look?.cancel();
    look = clock.after(LOOK_MS, run);
  }
  function end(reason: string, code: StreamStatus): void {
    enter({ kind: "end", status: code, reason });
  }
  // A defect that one proxy's messages reach ends the stream of this proxy and not the manager.
  function enter(event: StreamEvent): void {
    try {
      apply(stepStream(state, event, facts));
    } catch (error) {
      log.error({ err: error, pod, peer: stream.getPeer() }, "a proxy's stream failed");
      if (event.kind !== "closed") stream.emit("error", { code: status.INTERNAL, details: "the stream failed" });
    }
  }
  function apply(next: ReturnType<typeof stepStream>): void {
    state = next.state;
    if (state.kind === "over") {
      due.cancel();
      look?.cancel();
      tables.close();
    }
    for (const effect of next.effects) carryOut(effect);
  }

  function carryOut(effect: StreamEffect) {
    switch (effect.kind) {
      case "write":
        return write(effect.message);
      case "welcome":
        due.cancel(); // the time starts again: the proxy may have waited until now, and a promise with tables is long
        due = expectMessage();
        stream.sendMetadata(new Metadata()); // this shows the proxy that it is served, even if no message follows
        return write(effect.message);
      case "look-later":
        return lookLater(() => enter({ kind: "look" }));
      case "serve":
        return serve(effect);
      case "deliver":
        return deliver(effect.message);
      case "newer-epoch":
        return deps.rejections?.reject("newer-epoch", pod, effect.message);
      case "redirect":
        write({ redirect: { endpoint: effect.endpoint } });
        stream.end();
        break;
      case "fail":
        stream.emit("error", { code: status[effect.status], details: effect.details });
        break;
      case "unregister":
        return registry.disconnected(pod, proxy);
      default:
        effect satisfies never;
    }
  }

  function serve({ registration, epoch, reports }: Extract<StreamEffect, { kind: "serve" }>): void {
    due.cancel();
    const route = tables.resolve(registration.route);
    tables.close();
    log.info({ pod, version: route.version, epoch }, "proxy connected");
    const { streamNumber, capabilities } = registration;
    registry.connected(pod, { uid: registration.pod?.uid ?? "", streamNumber, capabilities, route }, proxy, epoch);
    for (const report of reports) registry.reported(pod, proxy, report);
  }

  /** Later messages wait for the tables of a promise before them. */
  let earlier: Promise<void> | undefined;
  function receive(message: ProxyMessage): void {
    const received = "promise" in message ? message.promise.tables : [];
    const go = () => enter({ kind: "message", message });
    if (received.length === 0 && earlier === undefined) go();
    else
      earlier = Promise.resolve(earlier)
        .then(async () => takeTables(received))
        .then(go);
  }

  // To parse the tables that a pod makes up may take a tenth of a second each, and many streams may come together.
  async function takeTables(received: readonly Uint8Array[]): Promise<void> {
    const [namespace = ""] = pod.split("/");
    for (const table of received) await deps.turns.run(pod, () => tables.take([table], namespace));
  }

  // Any other message is a newer proxy's, and is ignored, as the contract says.
  function deliver(message: ProxyMessage): void {
    if ("ack" in message) registry.acked(pod, proxy, message.ack);
    else if ("nack" in message) registry.nacked(pod, proxy, message.nack);
    else if ("report" in message) registry.reported(pod, proxy, message.report);
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

  function listen(identified: PodIdentity | undefined): void {
    caller = identified;
    stream.on("data", (message: ProxyMessage) => {
      if (isFlood()) end(`more than ${MAX_MESSAGES} messages in a second`, "RESOURCE_EXHAUSTED");
      else receive(message);
    });
    stream.on("end", () => {
      enter({ kind: "closed" });
      stream.end();
    });
  }

  stream.on("error", () => enter({ kind: "closed" }));
  stream.on("close", () => {
    enter({ kind: "closed" });
    for (const timer of unread) timer.cancel();
  });
  admitCaller({
    identify: () => deps.identify?.(stream.metadata, stream.getPeer()),
    judge: deps.judge,
    leaderElsewhere: () => deps.leaderElsewhere?.(),
    pause: () => new Promise<void>(lookLater),
    isOver,
    listen,
    turnAway: (verdict) => apply(turnAway(state, verdict)),
    end,
  }).catch((error: unknown) => {
    log.error({ err: error, peer: stream.getPeer() }, "opening a proxy's stream failed");
    end("opening the stream failed", "INTERNAL");
  });
}
