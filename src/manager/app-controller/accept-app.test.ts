import { expect, it } from "vitest";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { ROUTES_FINALIZER } from "../../api/app-status.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { Routes } from "../apps/routes.ts";
import { createAcceptance } from "./accept-app.ts";

const { signal } = new AbortController();
const ref = { namespace: "ops", name: "shop" };
const TABLE = {} as Exclude<Awaited<ReturnType<Routes["tableOf"]>>, string>;

function setUp(status: VirtualApp["status"] = undefined) {
  const client = createFakeKubeClient();
  const sample = sampleVirtualApp() as unknown as VirtualApp;
  const app = appOf(client.put(VIRTUAL_APPS, { ...sample, status, metadata: { ...ref, uid: "u", generation: 1 } }));
  const compiled: { table: Awaited<ReturnType<Routes["tableOf"]>> } = { table: TABLE };
  const acceptance = createAcceptance({
    source: { resource: VIRTUAL_APPS },
    client,
    namespaces: { list: () => [] },
    routes: { tableOf: async () => compiled.table },
    statuses: { write: async () => ({ isWritten: true }) },
  });
  const finalizers = () => client.read<VirtualApp>(VIRTUAL_APPS, ref)?.metadata.finalizers;
  return { acceptance, app, compiled, finalizers };
}

it("an accepted app has the finalizer, and is one that this process served first", async () => {
  const { acceptance, app, finalizers } = setUp();
  expect(acceptance.isFirstServed(app)).toBe(false);
  expect(await acceptance.accept(app, {}, signal)).toMatchObject({ bySpec: TABLE });
  expect(finalizers()).toEqual([ROUTES_FINALIZER]);
  expect(acceptance.isFirstServed(app)).toBe(true);
  acceptance.forget(ref);
  expect(acceptance.isFirstServed(app)).toBe(false);
});

it("an app with a route version was served before, even if it has lost its finalizer", async () => {
  const { acceptance, app } = setUp({ routeVersion: 3 });
  await acceptance.accept(app, {}, signal);
  expect(acceptance.isFirstServed(app)).toBe(false);
});

it("an app whose table is not compiled yet is not planned, and an edited one is looked at again within 100 ms", async () => {
  const { acceptance, app, compiled } = setUp();
  compiled.table = "compiling";
  expect(await acceptance.accept(app, {}, signal)).toEqual({ instead: {} });
  compiled.table = "edited";
  expect(await acceptance.accept(app, {}, signal)).toEqual({ instead: { requeueAfterMs: 100 } });
});
