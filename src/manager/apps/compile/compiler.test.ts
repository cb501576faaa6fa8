import { expect, it } from "vitest";
import { longestTurnMs } from "../../../../test/support/thread-cpu.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import { systemClock } from "../../../base/clock.ts";
import { routeOf } from "../../virtual-app/route-rules.ts";
import { createCompiler } from "./compiler.ts";
import { createExpressionMatcher } from "./expression-matcher.ts";

const names = (count: number) => Array.from({ length: count }, (_, at) => `team-${at}-${"a".repeat(40)}`.slice(0, 63));
const namespaces = (count: number) => names(count).map((name) => ({ name, labels: { team: name } }));
const routeWith = (match: readonly object[]) =>
  routeOf(sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match }] } }).spec as unknown as VirtualAppSpec);
/** Within every bound of a spec when namespaceRegex still allowed word boundaries: 60 ms for one name. */
const DEAR = String.raw`${"(.?.?.?.?.?.?.?)".repeat(2)}${"(.?.?.?){60}"}\B-\B`;
/** The most CPU time of one turn of the event loop. A slice takes far less; without slices a turn takes seconds. */
const MAX_PAUSE_MS = 500;
/** A limit that ends nothing in these tests, on however busy a machine. */
const NO_LIMIT_MS = 60_000;
const compile = createCompiler({ matchExpressions: createExpressionMatcher(), clock: systemClock });
const compileDear = (limitMs: number, signal?: AbortSignal) =>
  compile(routeWith([{ namespaceRegex: DEAR }]), namespaces(1_000), limitMs, signal && { signal });

it("compiles expressions and selectors", async () => {
  const table = await compile(
    routeWith([{ namespaceRegex: "^team-1" }, { namespaceSelector: { matchLabels: { team: names(3)[2] ?? "" } } }]),
    namespaces(3),
    NO_LIMIT_MS,
  );
  expect([...(table?.classOf.values() ?? [])].map((at) => table?.classes[at])).toEqual([[], [0], [1]]);
});

it("a tenant's dear expression ends at its limit and does not hold up the event loop", async () => {
  let table: unknown = "none";
  const pause = await longestTurnMs(async () => {
    table = await compileDear(300);
  });
  expect(table).toBeUndefined();
  expect(pause).toBeLessThan(MAX_PAUSE_MS);
});

it("an ordinary app does not wait for the dear apps of a whole namespace", async () => {
  const gone = new AbortController();
  let ended = 0;
  const dear = Array.from({ length: 16 }, async () => {
    await compileDear(NO_LIMIT_MS, gone.signal);
    ended++;
  });
  await compile(routeWith([{ namespaceRegex: "^team-1" }]), namespaces(1_000), NO_LIMIT_MS);
  const endedBefore = ended;
  gone.abort();
  await Promise.all(dear);
  expect(endedBefore).toBe(0);
}, 60_000);

it("ordinary expressions are answered while a dear one runs", async () => {
  const gone = new AbortController();
  const hog = compileDear(NO_LIMIT_MS, gone.signal);
  const first = await Promise.race([
    hog.then(() => "the dear one"),
    compile(routeWith([{ namespaceRegex: "^team-1" }]), namespaces(1_000), NO_LIMIT_MS).then(() => "the ordinary one"),
  ]);
  gone.abort();
  await hog;
  expect(first).toBe("the ordinary one");
}, 60_000);

it("compilations that nobody wants any more end at once, and none waits for them", async () => {
  const gone = new AbortController();
  const dear = Array.from({ length: 16 }, () => compileDear(NO_LIMIT_MS, gone.signal));
  await compile(routeWith([{ namespaceRegex: "^team-1" }]), namespaces(3), NO_LIMIT_MS);
  gone.abort();
  expect(new Set(await Promise.all(dear))).toEqual(new Set([undefined]));
  const startMs = performance.now();
  await compileDear(300);
  expect(performance.now() - startMs).toBeLessThan(NO_LIMIT_MS / 2);
  expect(await compile(routeWith([]), namespaces(1), NO_LIMIT_MS, { signal: gone.signal })).toBeUndefined();
}, 60_000);

it("thousands of selectors are tested in slices, and end at their limit", async () => {
  const match = Array.from({ length: 4_000 }, (_, at) => ({
    namespaceSelector: { matchExpressions: [`a${at}`, `b${at}`].map((key) => ({ key, operator: "NotIn", values: ["x"] })) },
  }));
  const route = routeWith(match);
  let table: unknown = "none";
  const pause = await longestTurnMs(async () => {
    table = await compile(route, namespaces(10_000), 300);
  });
  expect(table).toBeUndefined();
  expect(pause).toBeLessThan(MAX_PAUSE_MS);
});
