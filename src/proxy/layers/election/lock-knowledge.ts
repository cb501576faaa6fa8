// What is known of the operator's permission to use one kind of lock object by its name upstream: a pure state machine. Called
// by lock-review, which asks. What the API server does counts more than what it has said.
//
//   event                 reviews               refused    exists            contradicted (ask again soon)
//   used, another verb    -                     -          -                 if an elector needs it
//   asked                 under way             -          -                 no
//   reviewed              that answer, over     -          -                 -
//   unanswered            over, as before       -          -                 -
//   answered 200, 201     the verb is allowed   - verb     yes, or no by a   if the reviews denied the verb
//   answered 409          "                     "          yes   [delete     "
//   answered 404          "                     "          no                "
//   answered 400 to 428   "                     "          -                 "
//   answered 403          -                     + verb     -                 if the reviews allowed the verb
//   401, 429, 5xx         -                     -          -                 -   not looked at by the authorizer, perhaps
import type { ResourceVerb } from "../../../kube/request-info.ts";

type Verbs = ReadonlySet<ResourceVerb>;

export interface Knowledge {
  readonly used: Verbs;
  /** By the reviews; undefined while there is no whole answer. */
  readonly denied: Verbs | undefined;
  readonly reason: string;
  /** Verbs whose last request was answered 403. */
  readonly refused: Verbs;
  /** The lock is there: whoever may not create it has no need to. */
  readonly exists: boolean;
  /** A request for the lock has been answered. */
  readonly tried: boolean;
  readonly askedMs: number | undefined;
  readonly asking: boolean;
  /** Something has happened that the last answer does not explain. */
  readonly contradicted: boolean;
}

export type LockEvent =
  /** A request for the lock was sent. */
  | { readonly kind: "used"; readonly verb: ResourceVerb }
  | { readonly kind: "answered"; readonly verb: ResourceVerb; readonly status: number }
  /** The reviews are on their way. */
  | { readonly kind: "asked"; readonly nowMs: number }
  /** Each verb has been answered. */
  | { readonly kind: "reviewed"; readonly denied: Verbs; readonly reason: string }
  /** One was not. */
  | { readonly kind: "unanswered" };

/** What may be told: the verbs that the operator needs and may not use; undefined while too little is known. */
export interface Verdict {
  readonly deniedVerbs: readonly ResourceVerb[];
  readonly reason: string;
}

/** Denied or without an answer: asked again after this time, when the lock is used, so that a mended Role is noticed. */
const RETRY_MS = 60_000;
/** Asked again because the API server did something else than it said: not sooner than this. */
const CONTRADICTED_MS = 2_000;

export const NOTHING_KNOWN: Knowledge = {
  used: new Set(),
  denied: undefined,
  reason: "",
  refused: new Set(),
  exists: false,
  tried: false,
  askedMs: undefined,
  asking: false,
  contradicted: false,
};

/** What is known after the event. */
export function step(before: Knowledge, event: LockEvent): Knowledge {
  switch (event.kind) {
    case "used": {
      const used = new Set(before.used).add(event.verb);
      const isNews = !neededVerbs(before.used).includes(event.verb) && neededVerbs(used).includes(event.verb);
      return { ...before, used, contradicted: before.contradicted || isNews };
    }
    case "asked":
      return { ...before, asking: true, contradicted: false, askedMs: event.nowMs };
    case "reviewed":
      return { ...before, asking: false, denied: event.denied, reason: event.reason };
    case "unanswered":
      return { ...before, asking: false };
    case "answered":
      return answered({ ...before, tried: true }, event.verb, event.status);
    default:
      return event satisfies never;
  }
}

function answered(before: Knowledge, verb: ResourceVerb, status: number): Knowledge {
  if (status === 401 || status === 429 || status >= 500) return before;
  const isDeniedByReview = before.denied?.has(verb) ?? false;
  if (status === 403) {
    const contradicted = before.contradicted || (before.denied !== undefined && !isDeniedByReview);
    return { ...before, refused: new Set(before.refused).add(verb), contradicted };
  }
  const refused = without(before.refused, verb);
  const known = { ...before, refused, exists: existsAfter(before.exists, verb, status) };
  if (before.denied === undefined || !isDeniedByReview) return known;
  return { ...known, denied: without(before.denied, verb), contradicted: true };
}

function existsAfter(before: boolean, verb: ResourceVerb, status: number): boolean {
  const isGood = status === 200 || status === 201;
  if (status === 404 || (isGood && verb === "delete")) return false;
  return before || isGood || status === 409;
}

function without(verbs: Verbs, verb: ResourceVerb): Verbs {
  return new Set([...verbs].filter((other) => other !== verb));
}

/** True if it is time to ask (again), now that the lock is used. */
export function isDue(of: Knowledge, nowMs: number): boolean {
  if (of.asking) return false;
  if (of.askedMs === undefined) return true;
  const sinceMs = nowMs - of.askedMs;
  if (of.contradicted) return sinceMs >= CONTRADICTED_MS;
  return (of.denied === undefined || deniedNow(of).length > 0) && sinceMs >= RETRY_MS;
}

/** What an elector needs. Of update and patch most use the one or the other: update is assumed until it is known. */
export function neededVerbs(used: Verbs): ResourceVerb[] {
  const writes: ResourceVerb[] = used.has("patch") ? (used.has("update") ? ["update", "patch"] : ["patch"]) : ["update"];
  return ["get", "create", ...writes, ...[...used].filter((verb) => verb === "delete" || verb === "list" || verb === "watch")];
}

/**
 * What follows. Before the lock itself was answered it is not known whether it has to be created; before the first reviews
 * were, a refusal says only the half of it.
 */
export function verdict(of: Knowledge): Verdict | undefined {
  if (!of.tried || (of.asking && of.denied === undefined)) return undefined;
  const deniedVerbs = deniedNow(of);
  if (of.denied === undefined && deniedVerbs.length === 0) return undefined;
  return { deniedVerbs, reason: deniedVerbs.length === 0 ? "" : of.reason };
}

// A 403 alone may have other reasons (a namespace that ends): it counts where the API server answers no reviews.
function deniedNow({ used, denied, refused, exists }: Knowledge): ResourceVerb[] {
  const verbs = denied ?? refused;
  return neededVerbs(used).filter((verb) => verbs.has(verb) && !(verb === "create" && exists));
}
