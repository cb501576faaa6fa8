// VirtualApps as the manager's parts see them, for tests.
import type { VirtualApp, VirtualAppSpec } from "../../src/api/virtual-app.ts";
import { type App, type AppSpec, type Apps, createApps } from "../../src/manager/sources/app.ts";
import { createVirtualAppSource, specOf as virtualAppSpecOf } from "../../src/manager/sources/virtual-app/virtual-app-source.ts";
import type { Informers } from "../../src/runtime/informers.ts";
import type { Store } from "../../src/runtime/store.ts";

/** The app of a VirtualApp, good or bad. */
export function appOf(object: unknown): App {
  return createVirtualAppSource().appOf(object as VirtualApp);
}

/** What a spec asks for. */
export function specOf(spec: VirtualAppSpec): AppSpec {
  return virtualAppSpecOf({ spec, metadata: {} });
}

/** The apps of one store of VirtualApps. */
export function appsIn(store: Store<VirtualApp>): Apps {
  return createApps({ store: () => store } as unknown as Informers, [createVirtualAppSource()]);
}
