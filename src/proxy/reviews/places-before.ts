// Remembers who owned the places that are fenced for this pod's subset, before they were. Invariant: an entry
// lasts exactly as long as the fence. Pure but for its memory; fed with each enforced snapshot.
import type { Labels } from "../../kube/label-selector.ts";
import type { Owner } from "../../route/table.ts";
import type { ChangeListener, Enforced } from "../session/session.ts";

export interface PlacesBefore {
  readonly follow: ChangeListener;
  /**
   * The owner of an object of a resource in a place, by the last snapshot without the fence. Undefined if the
   * place is not fenced, or if that is not known.
   */
  ownerBefore(resource: { readonly group: string; readonly resource: string }, place: string, labels?: Labels): Owner | undefined;
}

export function createPlacesBefore(): PlacesBefore {
  let known: ReadonlyMap<string, Enforced> = new Map();
  return {
    follow(now, before) {
      const next = new Map<string, Enforced>();
      for (const place of now.snapshot.table.fenced) {
        const last = known.get(place) ?? (before?.snapshot.table.fenced.has(place) ? undefined : before);
        if (last !== undefined) next.set(place, last);
      }
      known = next;
    },
    ownerBefore: ({ group, resource }, place, labels) => known.get(place)?.view(group, resource).ownerOf(place, labels),
  };
}
