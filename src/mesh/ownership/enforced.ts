// The snapshot in force, with the views that were made of it.

import { indexRetained } from "./retained-index.ts";
import type { ResourceView, Snapshot } from "./snapshot.ts";
import { viewOf } from "./view-of.ts";

export interface Enforced {
  readonly snapshot: Snapshot;
  /** Each view is compiled once. */
  view(group: string, resource: string): ResourceView;
}

export type ChangeListener = (now: Enforced, before: Enforced | undefined) => void;

export interface EnforcedRoutes {
  /** Undefined before the first snapshot. */
  readonly current: Enforced | undefined;
  /** Calls the listener synchronously after every newly enforced snapshot. Returns the unsubscription. */
  onChange(listener: ChangeListener): () => void;
}

export function enforced(snapshot: Snapshot): Enforced {
  const views = new Map<string, ResourceView>();
  const retained = indexRetained(snapshot.table);
  return {
    snapshot,
    view(group, resource) {
      const key = `${group}/${resource}`;
      let view = views.get(key);
      if (view === undefined) {
        view = viewOf(snapshot, group, resource, retained);
        // Names come from request paths: a client that invents resources must not fill the memory.
        if (views.size >= MAX_VIEWS) views.clear();
        views.set(key, view);
      }
      return view;
    },
  };
}

const MAX_VIEWS = 4096;
