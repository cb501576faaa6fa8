// The slices of the apps on the API server, and what this manager has written of them. Invariants: the manager watches their
// metadata alone, since it knows what it has written; all apps together write ten slices a second at most.
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isLaterVersion } from "../../kube/resource-version.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Request } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, Source } from "../apps/app.ts";
import type { Slice } from "./pack-slices.ts";
import { appNameOf, isSliceOf, readSlice, sliceObject } from "./slice-object.ts";

export interface SliceStoreOptions {
  readonly client: Pick<KubeClient, "list" | "create" | "update" | "delete">;
  readonly sources: readonly Pick<Source, "resource">[];
  /** The metadata of the slices. */
  readonly slices: Pick<Store<KubeObject>, "get" | "list" | "wrote">;
  readonly clock: Clock;
}

/** The slices of one app as they were written last, by name. */
export type WrittenSlices = Map<string, WrittenSlice>;

interface WrittenSlice {
  readonly slice: Slice;
  readonly uid: string | undefined;
  readonly version: string | undefined;
}

/** A namespace is in a slice of every app: without a bound, each new one would have etcd store all of them at once. */
export const WRITES_PER_SECOND = 10;

export function createSliceStore({ client, sources, slices, clock }: SliceStoreOptions) {
  const takeTurn = createTurns(clock);
  const namesOf = ({ namespace, name }: Request) =>
    slices.list(namespace).flatMap((each) => (appNameOf(each) === name ? [each.metadata.name ?? ""] : []));

  return {
    /** What an earlier leader has written. */
    async read({ namespace, name }: Request, signal: AbortSignal): Promise<WrittenSlices> {
      const labelSelector = `${SLICE_APP_LABEL}=${name}`;
      const { items } = await client.list(OWNERSHIP_SLICES, { namespace, labelSelector, signal });
      return new Map(items.map((object) => [object.metadata.name ?? "", writtenSlice(object.metadata, readSlice(object))]));
    },
    /** The slices that somebody else has edited or deleted, and the names of those that the manager has not written. */
    foreign(app: App, written: WrittenSlices): { readonly touched: readonly Slice[]; readonly unknown: readonly string[] } {
      const isTouched = ({ slice, uid, version }: WrittenSlice) => {
        const now = slices.get(slice.name, app.ref.namespace);
        if (now === undefined || now.metadata.uid !== uid || !isSliceOf(app, now)) return true;
        return now.metadata.resourceVersion !== version && !isLaterVersion(version, now.metadata.resourceVersion);
      };
      const touched = [...written.values()].filter(isTouched).map(({ slice }) => slice);
      return { touched, unknown: namesOf(app.ref).filter((name) => !written.has(name)) };
    },
    async write(app: App, written: WrittenSlices, slice: Slice, signal: AbortSignal): Promise<void> {
      const { resource } = sources.find((source) => source.resource.kind === app.ref.kind) ?? {};
      if (resource === undefined) return;
      await takeTurn(signal);
      const stored = slices.get(slice.name, app.ref.namespace);
      const object = sliceObject(app, resource, slice, stored?.metadata);
      const { metadata } = await (stored === undefined
        ? client.create(OWNERSHIP_SLICES, object, { signal })
        : client.update(OWNERSHIP_SLICES, object, { signal }));
      slices.wrote({ metadata });
      written.set(slice.name, writtenSlice(metadata, slice));
    },
    async remove({ namespace, name }: Request, signal: AbortSignal): Promise<void> {
      const uid = slices.get(name, namespace)?.metadata.uid;
      if (uid === undefined) return;
      await takeTurn(signal);
      await client.delete(OWNERSHIP_SLICES, { namespace, name }, { signal, preconditions: { uid } }).catch((error: unknown) => {
        if (!isStatus(error, "NotFound", "Conflict")) throw error; // somebody else was faster
      });
    },
    namesOf,
  };
}

function writtenSlice({ uid, resourceVersion }: KubeObject["metadata"], slice: Slice): WrittenSlice {
  return { slice, uid, version: resourceVersion };
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
