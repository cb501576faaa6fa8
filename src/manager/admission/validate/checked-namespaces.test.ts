import { expect, test } from "vitest";
import { compileHere } from "../../../../test/support/compile.ts";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { appOf } from "../../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { Compile } from "../../apps/compile/compiler.ts";
import { checkedNamespaces, createMoveLimit, type NamespaceChecks } from "./edit-moves.ts";

const checked = (apps: NamespaceChecks["apps"], compile: Compile = compileHere) =>
  checkedNamespaces({ apps, compile, limit: createMoveLimit(), clock: createFakeClock() });
const namespace = (labels: Record<string, string>) => ({ metadata: { name: "team-b", labels } });
const appNamed = (name: string, route: object = {}) => {
  const subRules = [{ name: "canary", match: [{ namespaceSelector: { matchLabels: { lane: "canary" } } }] }];
  const spec = { route: { subRules, ...route }, subsets: [{ name: "v2", labels: { version: "v2" }, routeRules: ["canary"] }] };
  return appOf({ ...sampleVirtualApp(spec), metadata: { namespace: "ops", name } } as unknown as VirtualApp);
};
const warningsOf = (apps: ReturnType<typeof appOf>[], before: object | undefined, after: object) =>
  checked({ list: () => apps }).judgeEdit(before, after, PLACE, CALLER);
const PLACE = { namespace: "team-b", name: "team-b" };

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
  expect(await checked(noApps as never).judgeEdit(namespace({ a: "b" }), namespace({ a: "b" }), PLACE, CALLER)).toEqual({
    problems: [],
    warnings: [],
  });
  expect((await warningsOf([appNamed("shop")], undefined, moved[1])).warnings).toEqual([]);
  expect((await warningsOf([appNamed("shop", { paused: true })], ...moved)).warnings).toEqual([]);
});

test("an edit that moves the namespace in many apps gets some warnings", async () => {
  const apps = Array.from({ length: 50 }, (_, index) => appNamed(`app-${index}`));
  expect((await warningsOf(apps, namespace({}), namespace({ lane: "canary" }))).warnings).toHaveLength(8);
});

const labelled = { metadata: { name: "team-b", labels: { lane: "canary" } } };
test.each<[string, object, object]>([
  ["a name of a megabyte", namespace({}), { metadata: { ...labelled.metadata, name: "p-pro".repeat(200_000) } }],
  ["a name that is no DNS label", namespace({}), { metadata: { ...labelled.metadata, name: "team.b\n" } }],
  ["no name", namespace({}), { metadata: { labels: labelled.metadata.labels } }],
  ["an old object without metadata", {}, labelled],
  ["a new object without metadata", labelled, {}],
  ["metadata that are no object", { metadata: 7 }, labelled],
  ["labels that are no object", { metadata: { name: "team-b", labels: "canary" } }, labelled],
])("an invented edit with %s gets no warning, no error and no computing", async (_what, before, after) => {
  const compile: Compile = async () => expect.fail("no compilation is needed");
  const kind = checked({ list: () => [appNamed("shop")] }, compile);
  expect(await kind.judgeEdit(before, after, PLACE, CALLER)).toEqual({ problems: [], warnings: [] });
});

test("labels that are null are as no labels, and the old object's name does not count", async () => {
  const before = { metadata: { name: "n".repeat(1_000_000), labels: null } };
  expect((await warningsOf([appNamed("shop")], before, labelled)).warnings).toHaveLength(1);
});

test("an address has one edit judged at a time, and the others pass without a warning", async () => {
  const kind = checked({ list: () => [appNamed("shop")] });
  const verdicts = await Promise.all(Array.from({ length: 5 }, () => kind.judgeEdit(namespace({}), labelled, PLACE, CALLER)));
  expect(verdicts.map(({ warnings }) => warnings.length)).toEqual([1, 0, 0, 0, 0]);
});

test("nothing more is computed for a client that is gone", async () => {
  const gone = new AbortController();
  const signals: (AbortSignal | undefined)[] = [];
  const compile: Compile = async (_route, _namespaces, _limitMs, options) => {
    signals.push(options?.signal);
    gone.abort();
    return undefined;
  };
  const kind = checked({ list: () => Array.from({ length: 50 }, (_, at) => appNamed(`app-${at}`)) }, compile);
  await kind.judgeEdit(namespace({}), labelled, PLACE, { address: "10.0.0.1", signal: gone.signal });
  expect(signals.map((signal) => signal?.aborted)).toEqual([true, true]);
});
