import { expect, test } from "vitest";
import { compileHere } from "../../../test/support/compile.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { checkedNamespaces } from "./checked-namespaces.ts";

const checked = (apps: Parameters<typeof checkedNamespaces>[0]) => checkedNamespaces(apps, compileHere, createFakeClock());
const namespace = (labels: Record<string, string>) => ({ metadata: { name: "team-b", labels } });
const appNamed = (name: string, route: object = {}) => {
  const subRules = [{ name: "canary", match: [{ namespaceSelector: { matchLabels: { lane: "canary" } } }] }];
  const spec = { route: { subRules, ...route }, subsets: [{ name: "v2", labels: { version: "v2" }, routeRules: ["canary"] }] };
  return appOf({ ...sampleVirtualApp(spec), metadata: { namespace: "ops", name } } as unknown as VirtualApp);
};
const warningsOf = (apps: ReturnType<typeof appOf>[], before: object | undefined, after: object) =>
  checked({ list: () => apps }).judgeEdit(before, after, { namespace: "team-b", name: "team-b" });

test("an edit that moves the namespace is allowed, with a warning for each app", async () => {
  const apps = [appNamed("shop"), appNamed("bank")];
  expect(await warningsOf(apps, namespace({}), namespace({ lane: "canary" }))).toEqual({
    problems: [],
    warnings: [
      'namespace "team-b" moves from the default subset to subset "v2" of VirtualApp ops/shop',
      'namespace "team-b" moves from the default subset to subset "v2" of VirtualApp ops/bank',
    ],
  });
});

test("other edits, new namespaces and paused apps get no warning", async () => {
  const moved = [namespace({}), namespace({ lane: "canary" })] as const;
  expect((await warningsOf([appNamed("shop")], namespace({ a: "b" }), namespace({ a: "c" }))).warnings).toEqual([]);
  const noApps = { list: () => expect.fail("equal labels need no look at the apps") };
  expect(
    await checked(noApps as never).judgeEdit(namespace({ a: "b" }), namespace({ a: "b" }), { namespace: "n", name: "n" }),
  ).toEqual({
    ...{ problems: [], warnings: [] },
  });
  expect((await warningsOf([appNamed("shop")], undefined, moved[1])).warnings).toEqual([]);
  expect((await warningsOf([appNamed("shop", { paused: true })], ...moved)).warnings).toEqual([]);
});

test("an edit that moves the namespace in many apps gets some warnings", async () => {
  const apps = Array.from({ length: 50 }, (_, index) => appNamed(`app-${index}`));
  expect((await warningsOf(apps, namespace({}), namespace({ lane: "canary" }))).warnings).toHaveLength(8);
});
