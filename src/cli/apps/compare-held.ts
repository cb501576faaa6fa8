// Where a sidecar differs from what the manager has published. Pure. Invariant: no owner is computed here.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { KubeObject } from "../../kube/types.ts";
import type { Held, HeldPlace } from "./held-places.ts";
import { type OwnedPlace, ownerText, placeText, resourcesText, type WithOwners } from "./owned-places.ts";

export interface Difference {
  /** A place, or KIND NAMESPACE/NAME of a policy. */
  readonly of: string;
  readonly published: string;
  readonly held: string;
}

/** @param isPart more places are published than are known here */
export function differingPlaces(published: readonly OwnedPlace[], { places, subset }: Held, isPart: boolean): Difference[] {
  const held = new Map(places.map((place) => [placeText(place), place]));
  const known = new Set(published.map(placeText));
  const differing = published.flatMap((place): Difference[] => {
    const of = placeText(place);
    const mine = held.get(of);
    if (mine !== undefined && isSame(place, mine, subset)) return [];
    return [{ of, published: publishedText(place), held: mine === undefined ? "not known" : heldText(mine) }];
  });
  const unpublished = isPart ? [] : places.filter((place) => !known.has(placeText(place)));
  return [
    ...differing,
    ...unpublished.map((place) => ({ of: placeText(place), published: "not published", held: heldText(place) })),
  ];
}

/** Only the pods of the next owner are fenced. A place is frozen for all pods, and published as that once it does not move. */
function isSame({ owners = [], state }: OwnedPlace, mine: HeldPlace, subset: string | undefined): boolean {
  if (!isDeepStrictEqual(owners, mine.owners)) return false;
  if ((state === "Frozen" && !mine.frozen) || (state === "Owned" && mine.frozen)) return false;
  const isOwner = owners.some((owner) => owner.subset === subset);
  return !isOwner || mine.fenced === (state === "Moving" || state === "Fenced");
}

function publishedText(place: OwnedPlace): string {
  const { state, from = [] } = place;
  return `${ownersText(place)}, ${state}${from.length === 0 ? "" : ` from ${from.join(", ")}`}`;
}

function heldText(place: HeldPlace): string {
  return `${ownersText(place)}${place.fenced ? ", fenced" : ""}${place.frozen ? ", frozen" : ""}`;
}

function ownersText(place: WithOwners): string {
  return (place.owners ?? []).some(({ resources }) => resources !== undefined) ? resourcesText(place) : ownerText(place);
}

/** What is read of the status of a policy, which another version may have written. */
const STATUS = z.object({
  mode: z.string().optional(),
  targetStatus: z.array(z.object({ podName: z.string(), message: z.string().optional() })).default([]),
});

/** @param published the policies of the namespace, by kind. Their statuses name the pods, up to a number of them */
export function differingPolicies(published: ReadonlyMap<string, readonly KubeObject[]>, held: Held, pod: string): Difference[] {
  const stored = [...published].flatMap(([kind, objects]) => objects.map((object) => ({ of: titleOf(kind, object), object })));
  const known = new Set(stored.map(({ of }) => of));
  const deleted = [...held.policies].filter((of) => !known.has(of));
  return [
    ...stored.flatMap(({ of, object }) => policyDifference(of, object, held, pod)),
    ...deleted.map((of) => ({ of, published: "there is no such object", held: "enforced" })),
  ];
}

function policyDifference(of: string, object: KubeObject, held: Held, pod: string): Difference[] {
  const { mode, targetStatus } = STATUS.safeParse((object as { readonly status?: unknown }).status).data ?? { targetStatus: [] };
  const target = targetStatus.find(({ podName }) => podName === pod);
  const isHeld = held.policies.has(of);
  const heldWord = isHeld ? "enforced" : "not enforced";
  if (target === undefined || mode === "Disabled") return [];
  if (target.message !== undefined) return [{ of, published: `not synced: ${target.message}`, held: heldWord }];
  return isHeld || held.hasMorePolicies ? [] : [{ of, published: "enforced", held: heldWord }];
}

function titleOf(kind: string, { metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}
