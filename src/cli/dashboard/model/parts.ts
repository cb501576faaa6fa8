// What the page shows, in parts: one for each app, slice, policy and kind. A part is replaced as a whole. Types only: the program and the
// page share them.
import type { AppStatus, HandoverStatus, LastHandover, RestartStatus } from "../../../api/app-status.ts";
import type { OwnershipEntry } from "../../../api/ownership-slice.ts";

export interface Problem {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

export interface ReadyState {
  /** True, False or Unknown. */
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** False: the condition is about an earlier edit. */
  readonly isCurrent: boolean;
}

export interface ShardFacts {
  readonly balance?:
    | { readonly largest: number; readonly smallest: number; readonly mean: number; readonly skew: number }
    | undefined;
  readonly rollout?:
    | {
        readonly done: number;
        readonly total: number;
        readonly waitingFor?: string | undefined;
        readonly message?: string | undefined;
      }
    | undefined;
  readonly gaps?: number | undefined;
  readonly overlaps?: number | undefined;
  readonly standby?: number | undefined;
}

export interface AppPart {
  readonly part: "app";
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly ready: ReadyState;
  /** Its spec pauses it. */
  readonly isPaused: boolean;
  /** The namespaces that its spec freezes, at home and in other clusters. */
  readonly frozen: readonly { readonly cluster?: string | undefined; readonly namespace: string; readonly reason: string }[];
  readonly proxies?: AppStatus["proxies"];
  readonly namespaces?: AppStatus["namespaces"];
  readonly subsets: NonNullable<AppStatus["subsets"]>;
  readonly handover?: HandoverStatus | undefined;
  readonly lastHandover?: LastHandover | undefined;
  readonly restart?: RestartStatus | undefined;
  /** The conditions that are False, without Ready, which sums them up. */
  readonly problems: readonly Problem[];
  /** Of a family of shards. */
  readonly shards?: ShardFacts | undefined;
  /** The fields of the status that cannot be read: another version has written it. */
  readonly unread: readonly string[];
}

export interface SlicePart {
  readonly part: "slice";
  /** NAMESPACE/NAME of the app. */
  readonly app: string;
  readonly entries: readonly OwnershipEntry[];
  /** The number of places that are left out: more than a slice may have, or of a form that another version has written. */
  readonly unread: number;
}

export interface OpenBreaker {
  readonly pod: string;
  readonly rule: string;
  /** Opened or HalfOpen. */
  readonly state: string;
  readonly cause?: string | undefined;
  readonly since?: string | undefined;
}

export interface PolicyPart {
  readonly part: "policy";
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly ready: ReadyState;
  readonly mode?: string | undefined;
  readonly endsAt?: string | undefined;
  readonly pods?: { readonly total: number; readonly synced: number; readonly opened: number } | undefined;
  /** Of the pods that the status lists. */
  readonly open: readonly OpenBreaker[];
  /** Since when faults are in effect. */
  readonly faultsSince?: string | undefined;
  readonly problems: readonly Problem[];
  readonly unread: readonly string[];
}

/** What can be seen of a kind. */
export interface KindPart {
  readonly part: "kind";
  /** For example "trafficpolicies.ctrlmesh.kruise.io". */
  readonly resource: string;
  readonly kind: string;
  /** `forbidden`: the user may not list or watch it. `missing`: the API server does not serve it. */
  readonly state: "loading" | "shown" | "forbidden" | "missing" | "failed";
  readonly problem?: string | undefined;
}

export type Part = AppPart | SlicePart | PolicyPart | KindPart;

/** By an id that says nothing else. */
export type Parts = Readonly<Record<string, Part>>;

/** A message to the page. */
export interface PartsMessage {
  /** True: nothing of before remains. */
  readonly isWhole: boolean;
  readonly set: Parts;
  readonly gone: readonly string[];
  /** Only in a whole message. */
  readonly about?: About;
}

export interface About {
  /** The namespace that is shown; undefined for all. */
  readonly namespace?: string | undefined;
  /** The flags with which ctrlmesh and kubectl ask the same cluster. */
  readonly access: readonly string[];
  readonly version: string;
  /** The page has it from its own text, and no request carries it. */
  readonly proof: string;
}

/** A message each second. */
export interface Tick {
  readonly nowMs: number;
  /** Since when the API server has not answered; undefined while it does. */
  readonly awaySinceMs?: number | undefined;
  readonly problem?: string | undefined;
}

/** The requests of an app in a few seconds. */
export interface Traffic {
  readonly seconds: number;
  readonly pods: number;
  readonly rows: readonly RequestRow[];
  /** The most frequent first. */
  readonly refused: readonly { readonly pod: string; readonly request: string; readonly count: number; readonly why: string }[];
  /** Pods that could not be asked. */
  readonly problems: readonly string[];
}

export interface RequestRow {
  readonly request: string;
  readonly count: number;
  readonly refused: number;
  readonly medianMs: number;
  readonly pods: number;
}
