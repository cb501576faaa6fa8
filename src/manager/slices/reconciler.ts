// Keeps the OwnershipSlices of an app as its plan says. Level-based: a new leader reads the slices, so that places stay in
// theirs and keep their times. Invariants: what is published decides nothing; a slice that cannot be written delays neither
// a handover nor a status, nor the slices of other apps.
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isLaterVersion } from "../../kube/resource-version.ts";
import { isNamespaceEnding, isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, type Apps, isHeld, isLive, type Source } from "../apps/app.ts";
import type { PublishedPlan, PublishedPlans } from "../apps/published-plans.ts";
import { packSlices, type Slice } from "./pack-slices.ts";
import { type Ownership, ownershipByPlace } from "./place-ownership.ts";
import { appNameOf, isSliceOf, readSlice, sliceObject } from "./slice-object.ts";

interface SlicesReconcilerOptions {
  readonly client: Pick<KubeClient, "list" | "create" | "update" | "delete">;
  readonly sources: readonly Pick<Source, "resource">[];
  readonly apps: Pick<Apps, "get">;
  readonly plans: Pick<PublishedPlans, "get">;
  /** The metadata of the slices. */
  readonly slices: Pick<Store<KubeObject>, "get" | "list" | "wrote">;
  readonly events: Pick<EventRecorder, "event">;
  readonly isOn: boolean;
  readonly clock: Clock;
}

/** A namespace is in a slice of every app: without a bound, each new one would have etcd store all of them at once. */
export const WRITES_PER_SECOND = 10;
/** A new leader waits for the pods' reports before it says that nobody may write. Most come within seconds. */
export const UNHEARD_MS = 30_000;

interface Published {
  /** As they were written last, by name. */
  readonly slices: Map<string, WrittenSlice>;
  /** The plan that the slices show; undefined after a failure. */
  plan?: PublishedPlan | undefined;
  fencedAtMs?: number | undefined;
  isFailing: boolean;
}

interface WrittenSlice {
  readonly slice: Slice;
  readonly uid: string | undefined;
  readonly version: string | undefined;
}

export function createSlicesReconciler(options: SlicesReconcilerOptions): Reconciler {
  const { client, apps, plans, slices, events, isOn, clock } = options;
  const published = new Map<string, Published>();
  const takeTurn = createTurns(clock);
  const sliceMetadata = ({ namespace, name }: Request) => slices.list(namespace).filter((each) => appNameOf(each) === name);

  async function read({ namespace, name }: Request, signal: AbortSignal): Promise<Published> {
    const { items } = await client.list(OWNERSHIP_SLICES, { namespace, labelSelector: `${SLICE_APP_LABEL}=${name}`, signal });
    const written = items.map(
      (object) => [object.metadata.name ?? "", writtenSlice(object.metadata, readSlice(object))] as const,
    );
    return { slices: new Map(written), isFailing: false };
  }

  async function write(app: App, known: Published, slice: Slice, signal: AbortSignal): Promise<void> {
    await takeTurn(signal);
    const { resource } = options.sources.find(({ resource: { kind } }) => kind === app.ref.kind) ?? {};
    if (resource === undefined) return;
    const stored = slices.get(slice.name, app.ref.namespace);
    const object = sliceObject(app, resource, slice, stored?.metadata);
    const { metadata } = await (stored === undefined
      ? client.create(OWNERSHIP_SLICES, object, { signal })
      : client.update(OWNERSHIP_SLICES, object, { signal }));
    slices.wrote({ metadata });
    known.slices.set(slice.name, writtenSlice(metadata, slice));
  }

  async function remove(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    const uid = slices.get(name, namespace)?.metadata.uid;
    if (uid === undefined) return;
    await takeTurn(signal);
    await client.delete(OWNERSHIP_SLICES, { namespace, name }, { signal, preconditions: { uid } }).catch((error: unknown) => {
      if (!isStatus(error, "NotFound", "Conflict")) throw error; // somebody else was faster
    });
  }

  /** The slices that somebody else has edited or deleted, and those that are none of ours. */
  function foreignWork(app: App, known: Published) {
    const { namespace } = app.ref;
    const isTouched = ({ slice, uid, version }: WrittenSlice) => {
      const now = slices.get(slice.name, namespace);
      if (now === undefined || now.metadata.uid !== uid || !isSliceOf(app, now)) return true;
      return now.metadata.resourceVersion !== version && !isLaterVersion(version, now.metadata.resourceVersion);
    };
    const touched = [...known.slices.values()].filter(isTouched).map(({ slice }) => slice);
    const others = sliceMetadata(app.ref).flatMap(({ metadata: { name = "" } }) => (known.slices.has(name) ? [] : [name]));
    return { touched, others };
  }

  /** Writes what differs; the rest goes on if one write fails. @throws the first error */
  async function publish(app: App, known: Published, ownership: ReadonlyMap<string, Ownership>, signal: AbortSignal) {
    const { touched, others } = foreignWork(app, known);
    const previous = [...known.slices.values()].map(({ slice }) => slice);
    const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    const none = others.map((name) => ({ name, entries: [] }));
    const { written, deleted } = packSlices([...previous, ...none], ownership, now, (taken) => freeName(app.ref.name, taken));
    const settled = new Set([...written.map(({ name }) => name), ...deleted]);
    const errors: unknown[] = [];
    const attempt = (work: Promise<void>) => work.catch((error: unknown) => void errors.push(error));
    for (const slice of [...written, ...touched.filter(({ name }) => !settled.has(name))]) {
      signal.throwIfAborted();
      await attempt(write(app, known, slice, signal));
    }
    // A place that could not be written into another slice is still in its old one.
    for (const name of errors.length > 0 ? [] : deleted) {
      await attempt(remove(app.ref.namespace, name, signal).then(() => void known.slices.delete(name)));
    }
    if (errors.length > 0) throw errors[0];
  }

  function report(app: App, known: Published, error: unknown): void {
    if (known.isFailing || isStatus(error, "Conflict", "AlreadyExists")) return; // the next look sees what is there
    known.isFailing = true;
    const text = `the OwnershipSlices are out of date, which changes no owner: ${errorMessage(error)}`;
    events.event(app.object, "Warning", "OwnershipNotPublished", text);
  }

  /** How long to wait before what nobody may write yet is shown; undefined: it may be shown. */
  function unheardWaitMs(known: Published, ownership: ReadonlyMap<string, Ownership>): number | undefined {
    const isFenced = [...ownership.values()].some(({ state }) => state === "Fenced");
    known.fencedAtMs = isFenced ? (known.fencedAtMs ?? clock.monotonicMs()) : undefined;
    const leftMs = (known.fencedAtMs ?? Number.NEGATIVE_INFINITY) + UNHEARD_MS - clock.monotonicMs();
    return leftMs > 0 ? leftMs : undefined;
  }

  async function show(app: App, plan: PublishedPlan, signal: AbortSignal): Promise<Result> {
    const key = formatRequest(app.ref);
    const known = published.get(key) ?? (await read(app.ref, signal));
    published.set(key, known);
    const { touched, others } = foreignWork(app, known);
    if (known.plan === plan && touched.length === 0 && others.length === 0) return {};
    const ownership = ownershipByPlace(plan);
    const waitMs = unheardWaitMs(known, ownership);
    if (waitMs !== undefined) return { requeueAfterMs: waitMs };
    try {
      known.plan = undefined;
      await publish(app, known, ownership, signal);
      known.plan = plan;
      known.isFailing = false;
    } catch (error) {
      if (isNamespaceEnding(error)) return {};
      report(app, known, error);
      throw error;
    }
    return {};
  }

  return {
    async reconcile(request, signal) {
      const app = apps.get(request.name, request.namespace);
      const plan = app && plans.get(app.ref);
      if (isOn && app !== undefined && (isLive(app) || isHeld(app))) return plan === undefined ? {} : show(app, plan, signal);
      published.delete(formatRequest(request));
      for (const { metadata } of sliceMetadata(request)) await remove(request.namespace, metadata.name ?? "", signal);
      return {};
    },
  };
}

function writtenSlice({ uid, resourceVersion }: KubeObject["metadata"], slice: Slice): WrittenSlice {
  return { slice, uid, version: resourceVersion };
}

/** APP-0, APP-1 and so on: no other app has such a name, since a name has one last part. */
function freeName(app: string, taken: ReadonlySet<string>): string {
  let number = 0;
  while (taken.has(`${app}-${number}`)) number++;
  return `${app}-${number}`;
}

/** Resolves when it is the caller's turn to write. */
function createTurns(clock: Clock): (signal: AbortSignal) => Promise<void> {
  let freeAtMs = 0;
  return async (signal) => {
    const nowMs = clock.monotonicMs();
    const atMs = Math.max(nowMs, freeAtMs);
    freeAtMs = atMs + 1_000 / WRITES_PER_SECOND;
    if (atMs > nowMs) await sleep(clock, atMs - nowMs, signal);
  };
}
