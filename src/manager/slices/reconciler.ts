// Keeps the OwnershipSlices of an app as its plan says. Level-based: a new leader reads the slices, so that places stay in
// theirs and keep their times. Invariants: what is published decides nothing; a slice that cannot be written delays neither
// a handover nor a status, nor the slices of other apps.
import { errorMessage } from "../../base/errors.ts";
import { remember } from "../../base/remember.ts";
import { isNamespaceEnding, isStatus } from "../../kube/status.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Reconciler, type Result } from "../../runtime/reconciler.ts";
import { type App, type Apps, isHeld, isLive } from "../apps/app.ts";
import type { OwnershipPlan, PublishedPlan, PublishedPlans } from "../apps/published-plans.ts";
import { ownershipOfClusters } from "./cluster-ownership.ts";
import { clustersWithoutOwners, insideOfPlace, ownershipInside } from "./inside-ownership.ts";
import { AT_HOME, type OwnedParts, packParts } from "./pack-parts.ts";
import { type Ownership, ownershipByPlace } from "./place-ownership.ts";
import { createSliceStore, type SliceStoreOptions, type WrittenSlices } from "./slice-store.ts";

interface SlicesReconcilerOptions extends SliceStoreOptions {
  readonly apps: Pick<Apps, "get">;
  readonly plans: Pick<PublishedPlans, "get">;
  readonly events: Pick<EventRecorder, "event">;
  /** False: all slices are deleted. */
  readonly isOn: boolean;
}

/** A new leader waits for the pods' reports before it says that nobody may write. Most come within seconds. */
export const UNHEARD_MS = 30_000;

interface Shown {
  readonly slices: WrittenSlices;
  /** The places that the slices show, by part; empty after a failure. */
  readonly packed: Map<string, ReadonlyMap<string, Ownership>>;
  /** The version of the plan that the slices show; undefined after a failure. */
  version?: number | undefined;
  /** Since when places are Fenced, or their owners not known (monotonic). */
  unheardAtMs?: number | undefined;
  isFailing: boolean;
}

export function createSlicesReconciler(options: SlicesReconcilerOptions): Reconciler {
  const { apps, plans, events, isOn, clock } = options;
  const store = createSliceStore(options);
  const shown = new Map<string, Shown>();

  /** Writes what differs; the rest goes on if one write fails. @throws the first error */
  async function publish(app: App, { slices, packed }: Shown, parts: OwnedParts, signal: AbortSignal) {
    const { touched, unknown } = store.foreign(app, slices);
    const previous = [...slices.values()].map(({ slice }) => slice);
    const empty = unknown.map((name) => ({ name, entries: [] }));
    const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    const isForeign = touched.length + unknown.length > 0;
    const isPacked = (part: string) => !isForeign && parts.has(part) && packed.get(part) === parts.get(part);
    const newName = (taken: ReadonlySet<string>) => freeName(app.ref.name, taken);
    const { written, deleted } = packParts([...previous, ...empty], parts, now, isPacked, newName);
    const settled = new Set([...written.map(({ name }) => name), ...deleted]);
    const errors: unknown[] = [];
    const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => void errors.push(error));
    for (const slice of [...written, ...touched.filter(({ name }) => !settled.has(name))]) {
      signal.throwIfAborted();
      await attempt(store.write(app, slices, slice, signal));
    }
    // A place that could not be written into another slice is still in its old one.
    for (const name of errors.length > 0 ? [] : deleted) {
      const { namespace } = app.ref;
      await attempt(store.remove({ namespace, name }, signal).then(() => slices.delete(name)));
    }
    if (errors.length > 0) throw errors[0];
  }

  function report(app: App, known: Shown, error: unknown): void {
    // Somebody else has written: the next look sees what is there.
    if (known.isFailing || isStatus(error, "Conflict", "AlreadyExists", "NotFound")) return;
    known.isFailing = true;
    const text = `the OwnershipSlices are out of date, which changes no owner: ${errorMessage(error)}`;
    events.event(app.object, "Warning", "OwnershipNotPublished", text);
  }

  /**
   * How long to wait before the places are shown, since the pods have not told yet what they enforce; undefined: they may be shown. A new
   * leader knows the namespaces of another cluster only when that or a pod has named them.
   */
  function unheardWaitMs(known: Shown, plan: OwnershipPlan, parts: OwnedParts): number | undefined {
    const unknown = new Set(clustersWithoutOwners(plan));
    const isUnheard = [...parts.values()].some(hasFenced) || (unknown.size > 0 && showsAny(known.slices, unknown));
    known.unheardAtMs = isUnheard ? (known.unheardAtMs ?? clock.monotonicMs()) : undefined;
    const leftMs = (known.unheardAtMs ?? Number.NEGATIVE_INFINITY) + UNHEARD_MS - clock.monotonicMs();
    return leftMs > 0 ? leftMs : undefined;
  }

  async function show(app: App, { plan, version }: PublishedPlan, signal: AbortSignal): Promise<Result> {
    const key = formatRequest(app.ref);
    const known: Shown = shown.get(key) ?? { slices: await store.read(app.ref, signal), packed: new Map(), isFailing: false };
    shown.set(key, known);
    const { touched, unknown } = store.foreign(app, known.slices);
    if (known.version === version && touched.length === 0 && unknown.length === 0) return {};
    const atHome = new Map([...ownershipByPlace(plan), ...ownershipOfClusters(plan)]);
    const parts = new Map([[AT_HOME, atHome], ...ownershipInside(plan)]);
    const waitMs = unheardWaitMs(known, plan, parts);
    if (waitMs !== undefined) return { requeueAfterMs: waitMs };
    known.version = undefined;
    try {
      await publish(app, known, parts, signal);
      known.packed.clear();
      for (const [part, places] of parts) known.packed.set(part, places);
    } catch (error) {
      known.packed.clear();
      if (isNamespaceEnding(error)) return {};
      report(app, known, error);
      throw error;
    }
    known.version = version;
    known.isFailing = false;
    return {};
  }

  return {
    async reconcile(request, signal) {
      const app = apps.get(request.name, request.namespace);
      if (isOn && app !== undefined && (isLive(app) || isHeld(app))) {
        const published = plans.get(app.ref);
        return published === undefined ? {} : show(app, published, signal);
      }
      shown.delete(formatRequest(request));
      for (const name of store.namesOf(request)) await store.remove({ ...request, name }, signal);
      return {};
    },
  };
}

/** APP-0, APP-1 and so on: no other app has such a name, since a name has one last part. */
function freeName(app: string, taken: ReadonlySet<string>): string {
  let number = 0;
  while (taken.has(`${app}-${number}`)) number++;
  return `${app}-${number}`;
}

const hasFenced = remember((places: ReadonlyMap<string, Ownership>) => {
  for (const { state } of places.values()) if (state === "Fenced") return true;
  return false;
});

/** True if a slice has a place inside one of the clusters. */
function showsAny(slices: WrittenSlices, clusters: ReadonlySet<string>): boolean {
  const isInside = (place: string) => clusters.has(insideOfPlace(place)?.cluster ?? "");
  return [...slices.values()].some(({ slice }) => slice.entries.some(({ places }) => places.some(isInside)));
}
