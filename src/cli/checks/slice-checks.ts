// Whether the OwnershipSlices are there, and name one owner for each place.
import { isDeepStrictEqual } from "node:util";
import { type OwnershipSlice, SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import type { FoundApp } from "../apps/apps.ts";
import { type OwnedPlace, ownerText, placesOf, placeText } from "../apps/owned-places.ts";
import { shellLine } from "../frame/output.ts";
import { orNothing } from "../frame/read-answer.ts";
import { type Check, type Finding, foundError, foundWarning } from "./check.ts";

const DOCS = "concepts/ownership.md#ownership-as-objects";
/** The manager writes them a second after the routes. */
const NEW_APP_MS = 60_000;
/** The most places that are named for an app. */
const MAX_NAMED = 5;

export const SLICES: Check = {
  name: "slices",
  holds: "every app has OwnershipSlices, and each place in them one owner",
  async run({ cluster, apps, namespace, nowMs }) {
    const served = apps().then((all) => all.filter((app) => isServed(app, nowMs)));
    const [found, all = []] = await Promise.all([served, orNothing(cluster.list(OWNERSHIP_SLICES, namespace))]);
    if (found.length > 0 && all.length === 0) {
      return [foundWarning("no app has an OwnershipSlice: does the manager have --ownership-slices=false?", DOCS)];
    }
    return found.flatMap((app) => sliceFindings(app, all));
  },
};

function isServed({ status, object }: FoundApp, nowMs: number): boolean {
  const age = nowMs - Date.parse(object.metadata.creationTimestamp ?? "");
  return status?.routeVersion !== undefined && !(age < NEW_APP_MS);
}

function sliceFindings({ kind, namespace, name }: FoundApp, all: readonly OwnershipSlice[]): Finding[] {
  const of = {
    object: `${kind.resource.kind} ${namespace}/${name}`,
    next: shellLine(["ctrlmesh", "owners", name, "-n", namespace, "-o", "wide"]),
  };
  const own = all.filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[SLICE_APP_LABEL] === name);
  if (own.length === 0) return [foundError("has no OwnershipSlice", DOCS, of)];
  const twice = ownedTwice(own.flatMap(placesOf));
  const named = twice.slice(0, MAX_NAMED).map((text) => foundError(text, DOCS, of));
  const more = twice.length - named.length;
  return more > 0 ? [...named, foundError(`${more} more places are owned twice`, DOCS, of)] : named;
}

function ownedTwice(places: readonly OwnedPlace[]): string[] {
  const byPlace = Map.groupBy(
    places.filter(({ state }) => state === "Owned" || state === "Frozen"),
    placeText,
  );
  return [...byPlace].flatMap(([place, [first, ...others]]) => {
    const other = others.find(({ owners }) => !isDeepStrictEqual(owners, first?.owners));
    return first === undefined || other === undefined
      ? []
      : [`${place} is owned by ${ownerText(first)} and by ${ownerText(other)}`];
  });
}
