import { createKnownDecisions } from "../../src/manager/decisions/known-decisions.ts";

// For reconcilers of apps in tests without other clusters.
export const NO_CLUSTERS = {
  clusters: { routes: () => [], of: () => ({ accepted: [], refused: new Map() }), decisions: createKnownDecisions() },
  watched: { storeOf: () => undefined, onNamespaces: () => () => undefined },
} as const;
