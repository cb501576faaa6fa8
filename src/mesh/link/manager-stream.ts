// One stream of a proxy, as the manager takes part in it. Pure except for the questions in `StreamFacts`.
// Invariants: a registration counts only after the proxy has promised not to follow an older leader; a
// replica that no longer leads sends nothing; the first message is the stream's only registration.
import type { Transition } from "../../base/machine.ts";
import type { ManagerMessage, ProxyMessage, RegistrationMessage, ReportMessage } from "../contract/messages.ts";
import { PEERS } from "../contract/peer-type.ts";
import { POLICY } from "../contract/policy-type.ts";
import { ROUTE } from "../contract/route-type.ts";

export type ProxyVerdict =
  | { readonly kind: "serve" }
  /** This replica does not lead; `endpoint` is "" while no leader is known. */
  | { readonly kind: "redirect"; readonly endpoint: string }
  | { readonly kind: "wait"; readonly message: string }
  | { readonly kind: "refuse"; readonly message: string };

/** The gRPC status codes with which a stream ends. */
export type StreamStatus =
  | "UNAVAILABLE"
  | "INVALID_ARGUMENT"
  | "PERMISSION_DENIED"
  | "UNAUTHENTICATED"
  | "RESOURCE_EXHAUSTED"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL";

export type StreamState =
  | { readonly kind: "registration-due" }
  /** The registration cannot be answered yet, or another proxy is being asked for one of its tables. */
  | (Registered & { readonly kind: "waits"; readonly sinceMs: number })
  | (Registered & { readonly kind: "promise-due"; readonly epoch: number })
  | { readonly kind: "served"; readonly epoch: number }
  | { readonly kind: "over" };

interface Registered {
  readonly registration: RegistrationMessage;
  readonly reports: EarlyReports;
}

/** The last report of each kind before the proxy was served. */
type EarlyReports = readonly ReportMessage[];

export type StreamEvent =
  | { readonly kind: "message"; readonly message: ProxyMessage }
  /** A registration that waits may be answered now. */
  | { readonly kind: "look" }
  | { readonly kind: "send"; readonly message: ManagerMessage }
  | { readonly kind: "end"; readonly status: StreamStatus; readonly reason: string }
  | { readonly kind: "closed" };

export type StreamEffect =
  | { readonly kind: "write"; readonly message: ManagerMessage }
  /** The first answer, which tells the proxy that this replica serves. */
  | { readonly kind: "welcome"; readonly message: ManagerMessage }
  | { readonly kind: "look-later" }
  | (Registered & { readonly kind: "serve"; readonly epoch: number })
  | { readonly kind: "deliver"; readonly message: ProxyMessage }
  /** The proxy may not follow this replica. */
  | { readonly kind: "newer-epoch"; readonly message: string }
  | { readonly kind: "redirect"; readonly endpoint: string }
  | { readonly kind: "fail"; readonly status: StreamStatus; readonly details: string }
  | { readonly kind: "unregister" };

export interface StreamFacts {
  nowMs(): number;
  epoch(): number | undefined;
  judge(registration: RegistrationMessage): ProxyVerdict;
  /** The reason to refuse the registration, whoever its proxy is. */
  refusal(registration: RegistrationMessage): { readonly status: StreamStatus; readonly details: string } | undefined;
  /** The tables to ask for; undefined if another proxy is being asked. */
  wantedTables(registration: RegistrationMessage, mayWait: boolean): readonly Uint8Array[] | undefined;
}

type Step = Transition<StreamState, StreamEffect>;

/** How long a registration may wait, in milliseconds: less than a proxy waits for an answer. */
export const MAX_WAIT_MS = 5_000;

export function stepStream(state: StreamState, event: StreamEvent, facts: StreamFacts): Step {
  if (state.kind === "over") return stay(state);
  switch (event.kind) {
    case "message":
      return onMessage(state, event.message, facts);
    case "look":
      return state.kind === "waits" ? answer(state, facts) : stay(state);
    case "send":
      // A process that was stopped may wake up here, so the lease is asked again.
      if (state.kind !== "served") return stay(state);
      if (facts.epoch() !== state.epoch) return leadsNoMore(state);
      return { state, effects: [{ kind: "write", message: event.message }] };
    case "end":
      return fail(state, event.status, event.reason);
    case "closed":
      return over(state);
    default:
      return event satisfies never;
  }
}

function onMessage(state: Exclude<StreamState, { kind: "over" }>, message: ProxyMessage, facts: StreamFacts): Step {
  switch (state.kind) {
    // Registration due => Waits, Promise due, or Over if it is turned away
    case "registration-due": {
      if (!("registration" in message)) return fail(state, "INVALID_ARGUMENT", NO_REGISTRATION);
      const { registration } = message;
      const refusal = facts.refusal(registration);
      if (refusal !== undefined) return fail(state, refusal.status, refusal.details);
      return answer({ kind: "waits", registration, sinceMs: facts.nowMs(), reports: [] }, facts);
    }
    // Waits => see `answer`; Over by a second registration
    case "waits":
      if ("registration" in message) return secondRegistration(state);
      return stay({ ...state, reports: withEarlyReport(state.reports, message) });
    // Promise due => Served if the proxy may still be served, else Over. Reports are kept.
    case "promise-due": {
      if ("registration" in message) return secondRegistration(state);
      if (!("promise" in message)) return stay({ ...state, reports: withEarlyReport(state.reports, message) });
      const { registration, epoch, reports } = state;
      const verdict = facts.judge(registration);
      if (verdict.kind !== "serve") return turnAway(state, verdict);
      if (message.promise.epoch !== epoch || facts.epoch() !== epoch) return leadsNoMore(state);
      return { state: { kind: "served", epoch }, effects: [{ kind: "serve", registration, epoch, reports }] };
    }
    case "served":
      if ("registration" in message) return secondRegistration(state);
      return { state, effects: [{ kind: "deliver", message }] };
    default:
      return state satisfies never;
  }
}

export const NO_REGISTRATION = "the first message must be a registration that names the pod";

/** The resource types with a controller that publishes a resource for every proxy. */
const SENT_TYPES = [ROUTE.name, POLICY.name, PEERS.name];

// Waits => Promise due, Over, or Waits
function answer(state: Extract<StreamState, { kind: "waits" }>, facts: StreamFacts): Step {
  const { registration, sinceMs, reports } = state;
  const mayWait = facts.nowMs() - sinceMs < MAX_WAIT_MS;
  const verdict = facts.judge(registration);
  if (verdict.kind === "wait" && mayWait) return { state, effects: [{ kind: "look-later" }] };
  if (verdict.kind !== "serve") return turnAway(state, verdict);
  const epoch = facts.epoch();
  if (epoch === undefined) return leadsNoMore(state);
  // Only this stream ends. To take over the claimed epoch would end the streams of all other proxies.
  if (registration.epoch > epoch) {
    const message = `the proxy follows a newer leader: epoch ${registration.epoch}, not ${epoch} (if no other replica leads, make the pod anew)`;
    return { state: OVER, effects: [{ kind: "newer-epoch", message }, ...fail(state, "UNAVAILABLE", message).effects] };
  }
  const wantedTables = facts.wantedTables(registration, mayWait);
  if (wantedTables === undefined) return { state, effects: [{ kind: "look-later" }] };
  return {
    state: { kind: "promise-due", registration, epoch, reports },
    effects: [{ kind: "welcome", message: { welcome: { epoch, wantedTables, types: SENT_TYPES } } }],
  };
}

export function turnAway(state: StreamState, verdict: Exclude<ProxyVerdict, { kind: "serve" }>): Step {
  if (verdict.kind === "refuse") return fail(state, "PERMISSION_DENIED", verdict.message);
  if (verdict.kind === "wait") return fail(state, "UNAVAILABLE", verdict.message);
  if (verdict.endpoint === "") return fail(state, "UNAVAILABLE", "no replica leads yet");
  return { state: OVER, effects: [{ kind: "redirect", endpoint: verdict.endpoint }] };
}

const OVER: StreamState = { kind: "over" };

function stay(state: StreamState): Step {
  return { state, effects: [] };
}

// Any => Over
function over(state: StreamState): Step {
  return { state: OVER, effects: state.kind === "served" ? [{ kind: "unregister" }] : [] };
}

function fail(state: StreamState, status: StreamStatus, details: string): Step {
  return { state: OVER, effects: [...over(state).effects, { kind: "fail", status, details }] };
}

function secondRegistration(state: StreamState): Step {
  return fail(state, "UNAVAILABLE", "a stream has one registration");
}

function leadsNoMore(state: StreamState): Step {
  return fail(state, "UNAVAILABLE", "this replica leads no more");
}

function withEarlyReport(reports: EarlyReports, message: ProxyMessage): EarlyReports {
  if (!("report" in message)) return reports;
  const { report } = message;
  const kindOf = (each: ReportMessage) => Object.keys(each).filter((key) => key !== "report")[0];
  return [...reports.filter((each) => kindOf(each) !== kindOf(report)), report];
}
