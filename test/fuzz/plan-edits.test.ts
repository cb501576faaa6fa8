// `ctrlmesh plan` counts the moves that the manager's core counts between its desired tables, for random routes and namespaces.
import fc from "fast-check";
import { expect, it } from "vitest";
import { planEdits } from "../../src/cli/plan/plan-edits.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import type { Source, SourceObject } from "../../src/manager/apps/app.ts";
import { compileNow } from "../../src/manager/apps/compile/compile-now.ts";
import { namespaceFacts } from "../../src/manager/apps/compile/route-spec.ts";
import { createVirtualAppSource } from "../../src/manager/virtual-app/virtual-app-source.ts";
import { countMoves } from "../../src/mesh/handover/moves.ts";
import { subsetDisplayName } from "../../src/mesh/ownership/words.ts";
import { budget, FUZZ_SEED } from "../support/fuzz.ts";
import { sampleVirtualApp } from "../support/virtual-app.ts";

const SUBSETS = ["blue", "green"];
const LETTERS = ["a", "b", "c", "d"];
const labels = fc.dictionary(fc.constantFrom("tier", "zone"), fc.constantFrom("x", "y"));
const namespaces = fc.uniqueArray(fc.record({ name: fc.constantFrom(...LETTERS, "aa", "ab", "ba"), labels }), {
  selector: ({ name }) => name,
  maxLength: 7,
});
const match = fc.oneof(
  fc.constantFrom(...LETTERS).map((letter) => ({ namespaceRegex: `^${letter}` })),
  fc.record({ tier: fc.constantFrom("x", "y") }).map((matchLabels) => ({ namespaceSelector: { matchLabels } })),
);
/** Each subset has the rule of its name. */
const apps = fc.tuple(match, match).map((matches) =>
  sampleVirtualApp({
    route: { subRules: matches.map((each, at) => ({ name: SUBSETS[at], match: [each] })) },
    subsets: SUBSETS.map((name) => ({ name, labels: { version: name }, routeRules: [name] })),
  }),
);

const objectsOf = (list: readonly { name: string; labels: Record<string, string> }[]) =>
  list.map((metadata) => ({ metadata })) as unknown as KubeObject[];

it(`agrees with the manager's core about what moves (SEED=${FUZZ_SEED})`, () => {
  let moved = 0;
  fc.assert(
    fc.property(apps, apps, namespaces, namespaces, (before, after, known, relabelled) => {
      const source = createVirtualAppSource() as unknown as Source;
      const edits = relabelled.filter(({ name }) => known.some((each) => each.name === name));
      const {
        apps: [plan],
      } = planEdits(
        {
          namespaces: objectsOf(known),
          clusters: [],
          decisions: [],
          objects: new Map([[source, [before as unknown as SourceObject]]]),
          inside: { owned: [], named: new Map(), home: "" },
        },
        {
          namespaces: objectsOf(edits),
          clusters: [],
          decisions: [],
          deletedClusters: [],
          objects: new Map([[source, [after as unknown as SourceObject]]]),
        },
      );
      const labelled = known.map(({ name, labels: had }) => ({
        name,
        labels: { ...had, ...edits.find((each) => each.name === name)?.labels },
      }));
      const tableOf = (object: object, list: typeof known) => {
        const [app] = source.appsOf([object as SourceObject]);
        const route = app?.spec?.route();
        if (route === undefined) throw new Error(`the app is refused: ${app?.problems.join("; ")}`);
        return compileNow(route, objectsOf(list).map(namespaceFacts));
      };
      const counts = countMoves(tableOf(before, known), tableOf(after, labelled));
      const expected = Object.fromEntries(
        [...counts].map(([subset, { gained, lost }]) => [subsetDisplayName(subset), { gained, lost }]),
      );
      const planned: Record<string, { gained: number; lost: number }> = {};
      for (const { from, to, namespaces: names } of plan?.moves ?? []) {
        planned[from] = { gained: planned[from]?.gained ?? 0, lost: (planned[from]?.lost ?? 0) + names.length };
        planned[to] = { gained: (planned[to]?.gained ?? 0) + names.length, lost: planned[to]?.lost ?? 0 };
        moved += names.length;
      }
      expect(plan?.problems).toEqual([]);
      expect(planned).toEqual(expected);
    }),
    budget(4_000),
  );
  expect(moved).toBeGreaterThan(100);
});
