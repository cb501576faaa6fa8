// VirtualApps in the manager's internal form, for tests.
import type { VirtualApp, VirtualAppSpec } from "../../src/api/virtual-app.ts";
import { type App, type AppSpec, type Apps, createApps } from "../../src/manager/apps/app.ts";
import { createVirtualAppSource, specOf as virtualAppSpecOf } from "../../src/manager/virtual-app/virtual-app-source.ts";
import type { Informers } from "../../src/runtime/informers.ts";
import type { Store } from "../../src/runtime/store.ts";

/** The app of a VirtualApp, which may be invalid. */
export function appOf(object: unknown): App {
  const [app] = createVirtualAppSource().appsOf([object as VirtualApp]);
  if (app === undefined) throw new Error("an object without an app");
  return app;
}

/** The app that a spec describes. */
export function specOf(spec: VirtualAppSpec): AppSpec {
  return virtualAppSpecOf({ spec, metadata: {} });
}

/** The apps of one store of VirtualApps. */
export function appsIn(store: Store<VirtualApp>, source = createVirtualAppSource()): Apps {
  return createApps({ store: () => store } as unknown as Informers, [source]);
}
