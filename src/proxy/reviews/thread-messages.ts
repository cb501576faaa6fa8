// The messages between the main thread and the listener's thread. Invariant: work that grows with what a
// stranger sends stays in that thread; the main thread gets questions of some hundred bytes.
import type { ListenAddress } from "../../base/listener.ts";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";
import type { TlsPair } from "../identity/tls-pair.ts";
import type { AccessFields } from "../observe/access-log.ts";
import type { ReviewDecision, ReviewQuestion } from "./decide-review.ts";
import type { ReviewResult } from "./review-call.ts";

export interface WebhooksConfig {
  readonly listen: ListenAddress;
  /** The port of the operator's webhook server, on 127.0.0.1. */
  readonly port: number;
  /** The folder with tls.crt and tls.key of the operator's webhook server. */
  readonly certDir: string;
}

export interface ThreadSettings extends WebhooksConfig {
  readonly drainMs: number;
  readonly requestMs: number;
  readonly logLevel: string;
  readonly accessLogShare: number;
}

/** What this pod shows to its peers, and the CAs of the mesh, as PEM. */
export type PeerCredentials = TlsPair & { readonly ca: string };

/** Whether the operator's certificate can be used. */
export interface CertificateState {
  readonly isThere: boolean;
  /** Why it cannot be used, with the remedy. */
  readonly problem: string | undefined;
  /** Why there has been none for a while, or "". */
  readonly report: string;
}

/** One call, for the metrics. */
export interface Observation {
  readonly result: ReviewResult;
  readonly isFromPeer: boolean;
  readonly seconds: number;
}

export type ToThread =
  | { readonly kind: "peers"; readonly peers: readonly PodPeer[] }
  /** The same questions may get other decisions now. */
  | { readonly kind: "routes-changed" }
  /** Whether somebody reads /debug/requests. */
  | { readonly kind: "tapped"; readonly isTapped: boolean }
  /** Answers the questions of one message, in their order. */
  | { readonly kind: "decided"; readonly decisions: readonly ReviewDecision[] }
  | { readonly kind: "credentials"; readonly credentials: PeerCredentials | { readonly problem: string } }
  | { readonly kind: "drain" };

export type FromThread =
  | ({ readonly kind: "certificate" } & CertificateState)
  /** The next message of this kind comes after the answer. */
  | { readonly kind: "decide"; readonly questions: readonly ReviewQuestion[] }
  | { readonly kind: "credentials" }
  | { readonly kind: "observed"; readonly observations: readonly Observation[] }
  /** A call, while somebody reads /debug/requests. */
  | { readonly kind: "request"; readonly fields: AccessFields }
  | ListenerState;

/** News of the listener itself. */
export type ListenerState =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "not-listening"; readonly reason: string }
  | { readonly kind: "drained" };
