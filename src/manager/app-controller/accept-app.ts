// Decides whether an app can be planned. Writes the status of an app that cannot be, and adds the finalizer
// of an app that can. Invariant: an app has its finalizer before the first proxy gets routes, so that a later
// deletion revokes these routes.
import { ROUTES_FINALIZER } from "../../api/app-status.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { plainTexts } from "../../base/plain-text.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../mesh/ownership/table.ts";
import { setFinalizer } from "../../runtime/finalizer.ts";
import { formatRequest, type Request, type Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, isHeld, isLive, type PodSelection, type Source, type SourceObject } from "../apps/app.ts";
import { MAX_TABLE_ENTRIES } from "../apps/compile/build-table.ts";
import { COMPILE_LIMIT_MS, RETRY_MS, type Routes } from "../apps/routes.ts";
import { notPlacedStatus, rejectedStatus } from "../status/app-status.ts";
import type { StatusFacts } from "../status/facts.ts";
import type { StatusFeed } from "../status/status-feed.ts";

/** The facts of the status that do not come from the plan. */
export type UnplannedFacts = Pick<StatusFacts, "injection">;

export interface AcceptedApp {
  readonly app: App;
  readonly selection: PodSelection;
  /** The desired route table; undefined while the app is being deleted. */
  readonly bySpec: RouteTable | undefined;
}

interface AcceptanceOptions {
  readonly source: Pick<Source, "resource">;
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly namespaces: Pick<Store<KubeObject>, "list">;
  readonly routes: Pick<Routes, "tableOf">;
  readonly statuses: Pick<StatusFeed, "write">;
}

export function createAcceptance({ source, client, namespaces, routes, statuses }: AcceptanceOptions) {
  /** The uid of each app that this process served first. */
  const firstServedUids = new Map<string, string | undefined>();

  const setFinalizerOf = (object: SourceObject, isPresent: boolean, signal: AbortSignal, onChanged?: () => void) =>
    setFinalizer({ client, resource: source.resource, finalizer: ROUTES_FINALIZER, signal, onChanged }, object, isPresent);

  async function removeFinalizers(objects: readonly SourceObject[], signal: AbortSignal): Promise<void> {
    await Promise.all(objects.map((object) => setFinalizerOf(object, false, signal)));
  }

  /** The objects with the finalizer; undefined if one is gone or newer, which queues the app again. */
  async function addFinalizers(app: App, signal: AbortSignal): Promise<SourceObject[] | undefined> {
    const { ref, object, objects } = app;
    // If somebody removed its finalizer, or an earlier app had its name, proxies may keep old routes.
    const wasServed = objects.some(({ status }) => status?.routeVersion !== undefined);
    const isNew = !isHeld(app) && app.leaving.length === 0 && !wasServed;
    const onAdded = () => {
      if (isNew) firstServedUids.set(formatRequest(ref), object.metadata.uid);
    };
    const written = await Promise.all(
      objects.map((each) => setFinalizerOf(each, true, signal, each === object ? onAdded : undefined)),
    );
    const current = written.filter((each) => each !== undefined);
    if (current.length < objects.length) return undefined;
    const isNewer = current.some(({ metadata }, index) => metadata.generation !== objects[index]?.metadata.generation);
    return isNewer ? undefined : current;
  }

  async function reject(
    app: App,
    facts: UnplannedFacts,
    message: string,
    signal: AbortSignal,
    statusOf = rejectedStatus,
  ): Promise<void> {
    const { generation = 0 } = app.object.metadata;
    await statuses.write(app, (previous, now) => statusOf({ ...facts, generation, message, previous, now }), signal);
  }

  return {
    removeFinalizers,
    /** This process added the finalizer: no proxy had routes before, so no grace time has to pass. */
    isFirstServed({ ref, object }: App) {
      const { uid } = object.metadata;
      return uid !== undefined && firstServedUids.get(formatRequest(ref)) === uid;
    },
    async accept(app: App, facts: UnplannedFacts, signal: AbortSignal): Promise<AcceptedApp | { readonly instead: Result }> {
      const { spec, leaving } = app;
      if (!isLive(app)) {
        const selection = spec === undefined ? injectedPods(app.ref.name) : app.pods;
        return { app, selection, bySpec: undefined };
      }
      if (spec === undefined) {
        await reject(app, facts, plainTexts(app.problems).join("; "), signal);
        // Otherwise a deleted object would stay for as long as the others are refused.
        if (isHeld(app)) await removeFinalizers(leaving, signal);
        return { instead: {} };
      }
      if (spec.waitsFor !== undefined) {
        await reject(app, facts, spec.waitsFor, signal, notPlacedStatus);
        return { instead: {} };
      }
      const objects = await addFinalizers(app, signal);
      if (objects === undefined) return { instead: {} };
      // Pods still serve the routes of the leaving objects, which are handed over as after any other edit.
      await removeFinalizers(leaving, signal);
      const current = { ...app, object: objects[0] ?? app.object, objects };
      const bySpec = await routes.tableOf(current, spec, signal);
      switch (bySpec) {
        case "edited":
          return { instead: { requeueAfterMs: EDITED_MS } };
        case "compiling":
        case "gone":
          return { instead: {} };
        case "too-costly":
          await reject(current, facts, tooCostlyMessage(namespaces.list().length), signal);
          return { instead: { requeueAfterMs: RETRY_MS } };
        default:
          return { app: current, selection: app.pods, bySpec };
      }
    },
    forget: (app: Request) => firstServedUids.delete(formatRequest(app)),
  };
}

// The pods of an app with a refused spec: those with its proxy.
function injectedPods(name: string): PodSelection {
  const matchLabels = { [INJECTED_LABEL]: name };
  return {
    name,
    selector: { matchLabels },
    selects: (labels) => labels?.[INJECTED_LABEL] === name,
    subsetOf: () => DEFAULT_SUBSET,
  };
}

/** Only for resource versions that cannot be compared: otherwise the store queues the app before. */
const EDITED_MS = 100;

function tooCostlyMessage(namespaces: number): string {
  const cost = `more than ${COMPILE_LIMIT_MS / 1000} s of computing, or a route table of more than ${MAX_TABLE_ENTRIES.toLocaleString("en-US")} entries`;
  return `spec: to apply the rules to the cluster's ${namespaces} namespaces, the manager needs ${cost}; use fewer rules, or a simpler namespaceRegex or namespaceSelector in each`;
}
