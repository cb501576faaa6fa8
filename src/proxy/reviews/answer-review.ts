// Answers one review: by this pod's operator, by a pod of the subset that owns the object, or by an error.
// Invariants: a forwarded review goes no further; an answer or an error comes before the caller's time is
// over, whatever the tables of other pods say.
import { onAbort } from "../../base/abort.ts";
import type { Random } from "../../base/clock.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { allowReview, type ReviewSubject } from "../../kube/admission-review.ts";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";
import type { Recipient } from "../../mesh/ownership/route-review.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { discardBody } from "../http/byte-stream.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { Reply } from "../http/handler.ts";
import { type Decide, followRoutes, type RoutesChanges } from "./ask-main.ts";
import { budgetMs, choosePeer } from "./choose-peer.ts";
import type { ReviewDecision } from "./decide-review.ts";
import type { SendToOperator } from "./operator-client.ts";
import type { PeerClients } from "./peer-clients.ts";
import {
  jsonReply,
  MISDIRECTED,
  REDIRECT_AS,
  REDIRECT_SUBSET,
  type ReviewCall,
  ReviewError,
  type ReviewLayer,
  type ReviewNotes,
  unavailable,
} from "./review-call.ts";

export interface AnswerDeps extends RoutesChanges {
  readonly decide: Decide;
  readonly sendToOperator: SendToOperator;
  readonly peers: { readonly current: readonly PodPeer[] };
  readonly clients: PeerClients;
  readonly random: Random;
}

/** Between two attempts, unless the routes change before: peers and their load may change. */
const PAUSE_MS = 100;
/** How long a review waits for a pod of the subset: the list of peers may be a moment old. */
const NO_PEER_MS = 1_000;
const MAX_REDIRECTS = 2;

const ERROR = "x-ctrlmesh-error";
/** The operator of a pod cannot be reached, so it has not seen the review. */
const UNREACHED = "OPERATOR_UNREACHABLE";
const NO_PEER = "NO_PEER";
const PEER_UNREACHED = "PEER_UNREACHABLE";
/** With these errors no pod has seen the review. */
const UNSEEN_CODES: ReadonlySet<string> = new Set([UNREACHED, NO_PEER, PEER_UNREACHED]);

type Attempt =
  | { readonly kind: "answered"; readonly reply: Reply }
  | { readonly kind: "redirected"; readonly to: Recipient; readonly ownSubset: string }
  | { readonly kind: "again"; readonly why: string };

/** Has a review answered by the subset that owns its object. What is not a review goes on to the operator. */
export function route(deps: AnswerDeps): ReviewLayer {
  return (next) => (call) => {
    const { subject } = call.record;
    return subject === undefined ? next(call) : answerReview(call, subject, deps);
  };
}

async function answerReview(call: ReviewCall, subject: ReviewSubject, deps: AnswerDeps): Promise<Reply> {
  const { clock } = deps;
  const totalMs = budgetMs(call.target);
  const endMs = clock.monotonicMs() + totalMs;
  const signal = new CallAbort();
  const unlink = onAbort(call.signal, () => signal.abort(call.signal.reason));
  const timer = clock.after(totalMs, () => signal.abort(TIME_IS_UP));
  try {
    return await decideUntilAnswered({ ...call, signal }, subject, deps, endMs);
  } finally {
    timer.cancel();
    unlink();
  }
}

const TIME_IS_UP = new Error("the caller's time is up");

async function decideUntilAnswered(call: ReviewCall, subject: ReviewSubject, deps: AnswerDeps, endMs: number): Promise<Reply> {
  const { clock } = deps;
  const startMs = clock.monotonicMs();
  const asking: Asking = { call, subject, deps, waitedMs: () => clock.monotonicMs() - startMs };
  const changes = followRoutes(deps);
  let why = "no answer has come";
  let decision: ReviewDecision | undefined;
  try {
    for (;;) {
      // A decision changes only with the routes, so a review that waits long costs the main thread nothing.
      if (decision === undefined || changes.take())
        decision = await deps.decide(
          { subject, forwardedAs: call.record.forwardedAs, isFirst: decision === undefined },
          call.signal,
        );
      let attempt = await carryOut(decision, asking);
      for (let redirects = 0; attempt.kind === "redirected" && redirects < MAX_REDIRECTS; redirects++)
        attempt = await followRedirect(attempt.to, attempt.ownSubset, asking);
      if (attempt.kind === "answered") return attempt.reply;
      why = attempt.kind === "again" ? attempt.why : "the pods do not agree yet which subset answers";
      if (clock.monotonicMs() + PAUSE_MS >= endMs) throw lateError(call.record, why);
      await changes.changeOrPause(PAUSE_MS, call.signal);
    }
  } catch (error) {
    throw call.signal.reason === TIME_IS_UP ? lateError(call.record, why) : error;
  } finally {
    changes.end();
  }
}

function lateError(record: ReviewNotes, why: string): ReviewError {
  const askedText = record.subset === undefined ? "" : ` (asked last: subset "${subsetDisplayName(record.subset)}")`;
  return unavailable("REVIEW_LATE", `ctrlmesh: no answer within the time of this webhook: ${why}${askedText}`);
}

interface Asking {
  readonly call: ReviewCall;
  readonly subject: ReviewSubject;
  readonly deps: AnswerDeps;
  readonly waitedMs: () => number;
}

async function carryOut(decision: ReviewDecision, asking: Asking): Promise<Attempt> {
  const { call, subject } = asking;
  if (decision.kind === "no-routes") return { kind: "again", why: "this proxy has no routes yet" };
  if (decision.kind === "failed") throw new Error("the main thread could not decide");
  if (decision.kind === "limited") {
    call.record.rule = decision.rule;
    throw new ReviewError(503, "BREAKER_OPEN", decision.message, "limited");
  }
  const { route, subset } = decision;
  switch (route.kind) {
    case "local":
      return answerHere({ subset, as: "owner" }, subset, asking);
    case "peer":
      return forwardReview(route.to, subset, asking);
    case "redirect":
      call.record.result = "redirected";
      return { kind: "answered", reply: redirection(route.to) };
    case "allowed":
      call.record.result = "allowed";
      return { kind: "answered", reply: jsonReply(200, allowReview(subject)) };
    case "hold":
      return { kind: "again", why: `the owner of ${placeText(route.place)} is not known yet` };
    case "unavailable":
      throw unavailable("NO_OWNER", route.message);
    default:
      return route satisfies never;
  }
}

async function followRedirect(to: Recipient, ownSubset: string, asking: Asking): Promise<Attempt> {
  if (to.subset !== ownSubset) return forwardReview(to, ownSubset, asking);
  // A newer table than ours says that our subset owns the object.
  if (to.as === "owner") return { kind: "again", why: "this proxy's routes are older than a peer's" };
  return answerHere(to, ownSubset, asking);
}

async function answerHere(to: Recipient, ownSubset: string, asking: Asking): Promise<Attempt> {
  const { call, deps } = asking;
  call.record.subset = to.subset;
  try {
    const reply = await deps.sendToOperator(call);
    call.record.result = "local";
    return { kind: "answered", reply };
  } catch (error) {
    // The operator is not up, and has seen nothing of the review: any other pod of the subset may answer.
    const isUnreached = error instanceof ReviewError && error.code === UNREACHED;
    if (!isUnreached || call.record.forwardedAs !== undefined) throw error;
    return forwardReview(to, ownSubset, asking).catch((atPeer: unknown) => {
      throw atPeer instanceof ReviewError && UNSEEN_CODES.has(atPeer.code) ? error : atPeer;
    });
  }
}

async function forwardReview(to: Recipient, ownSubset: string, asking: Asking): Promise<Attempt> {
  const { call, deps } = asking;
  const { clients, peers, random } = deps;
  const { inFlightAt } = clients;
  call.record.subset = to.subset;
  const subsetText = `subset "${subsetDisplayName(to.subset)}"`;
  clients.keep(peers.current);
  const nobody = (code: string, why: string): Attempt => {
    if (asking.waitedMs() >= NO_PEER_MS) throw unavailable(code, `ctrlmesh: ${why}`);
    return { kind: "again", why };
  };
  let failed: { readonly peer: PodPeer; readonly code: string; readonly why: string } | undefined;
  for (;;) {
    const choice = choosePeer(peers.current, to.subset, { inFlightAt, random }, failed?.peer);
    if (choice.kind === "none") {
      // API servers call pods without this listener directly, so any pod of the app may answer.
      if (choice.why === "direct" && ownSubset !== to.subset) return answerHere({ ...to, subset: ownSubset }, ownSubset, asking);
      const why = `${subsetText} has ${NO_PEER_TEXTS[choice.why]}`;
      if (choice.why === "full") return { kind: "again", why };
      return failed === undefined ? nobody(NO_PEER, why) : nobody(failed.code, failed.why);
    }
    const { peer } = choice;
    const name = `pod ${peer.name} of ${subsetText}`;
    let failure: { readonly code: string; readonly why: string };
    try {
      const reply = await clients.send(peer, to.as, call);
      if (reply.headers[ERROR] !== UNREACHED) return outcomeOf(reply, ownSubset, call);
      discardBody(reply.body);
      failure = { code: UNREACHED, why: `the operator of ${name} cannot be reached` };
    } catch (error) {
      if (call.signal.aborted) throw error;
      if (!isMeshError(error, "UPSTREAM_UNREACHABLE"))
        throw unavailable("PEER_BROKEN", `ctrlmesh: ${name} broke off without an answer`);
      failure = { code: PEER_UNREACHED, why: `${name} cannot be reached: ${errorMessage(error.cause)}` };
    }
    if (failed !== undefined) return nobody(failure.code, failure.why);
    failed = { peer, ...failure };
  }
}

const NOT_READY = "no other pod that is ready";
const NO_PEER_TEXTS = {
  "no-pod": "no pod",
  "not-ready": NOT_READY,
  direct: NOT_READY,
  full: "no pod that takes another review",
} as const;

function outcomeOf(reply: Reply, ownSubset: string, call: ReviewCall): Attempt {
  const { status, headers, body } = reply;
  const [subset, as] = [headers[REDIRECT_SUBSET], headers[REDIRECT_AS]];
  if (status === MISDIRECTED && typeof subset === "string") {
    discardBody(body);
    if (as === "owner" || as === "holder") return { kind: "redirected", to: { subset, as }, ownSubset };
    return { kind: "again", why: "the other pod redirects reviews in a way that this proxy does not know" };
  }
  if (headers[ERROR] === "PEER_UNKNOWN") {
    discardBody(body);
    return { kind: "again", why: "the other pod does not know this one yet" };
  }
  call.record.result = "forwarded";
  return { kind: "answered", reply };
}

function redirection({ subset, as }: Recipient): Reply {
  return { status: MISDIRECTED, headers: { [REDIRECT_SUBSET]: subset, [REDIRECT_AS]: as, "content-length": "0" }, body: null };
}

function placeText(place: string): string {
  return place === "" ? "the cluster scope" : `"${place}"`;
}
