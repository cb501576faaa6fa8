import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../kube/types.ts";
import { createStore } from "../../runtime/store.ts";
import { createLabelCounts } from "./label-counts.ts";
import { missingLabels } from "./right-labels.ts";

const CONFIG_MAPS = { group: "", resource: "configmaps" };
const NAMESPACES = { group: "", resource: "namespaces" };
const never = () => false;
const object = (name: string, namespace: string | undefined, isLabelled = false): KubeObject => {
  const bare = { metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
  const of = namespace === undefined ? NAMESPACES : CONFIG_MAPS;
  return isLabelled ? { metadata: { ...bare.metadata, labels: missingLabels(of, bare) ?? {} } } : bare;
};

function counted(of: typeof CONFIG_MAPS, ...objects: KubeObject[]) {
  const store = createStore<KubeObject>((error) => {
    throw error;
  });
  const counts = createLabelCounts(of);
  store.onChange(counts.see);
  store.replace(objects);
  return { store, counts };
}

describe("the counts of labels", () => {
  it("leave out namespaces that are opted out, and their objects", () => {
    const { counts } = counted(CONFIG_MAPS, object("x", "out"), object("x", "in"), object("x", "a", true));
    const { total, labelled, missing } = counts.read((name) => name === "out");
    expect([total, labelled]).toEqual([2, 1]);
    expect(missing.map(({ object: { metadata }, labels }) => [metadata.namespace, labels])).toEqual([
      ["in", missingLabels(CONFIG_MAPS, object("x", "in"))],
    ]);
    expect(counted(NAMESPACES, object("a", undefined)).counts.read((name) => name === "a")).toMatchObject({
      total: 0,
      labelled: 0,
    });
  });

  it("are those of the objects that exist, after any changes", () => {
    const change = fc.record({
      name: fc.constantFrom("x", "y"),
      namespace: fc.constantFrom("a", "b"),
      kind: fc.constantFrom("bare", "labelled", "gone"),
    });
    fc.assert(
      fc.property(fc.array(change), (changes) => {
        const { store, counts } = counted(CONFIG_MAPS);
        for (const { name, namespace, kind } of changes) {
          const next = object(name, namespace, kind === "labelled");
          if (kind === "gone") store.remove(next);
          else store.upsert(next);
        }
        const missing = store.list().filter((each) => missingLabels(CONFIG_MAPS, each) !== undefined);
        const read = counts.read(never);
        expect(read).toMatchObject({ total: store.size, labelled: store.size - missing.length });
        expect(new Set(read.missing.map((each) => each.object))).toEqual(new Set(missing));
      }),
    );
  });

  it("judge an object when it changes, and not again when they are read", () => {
    let judged = 0;
    const watched = (name: string): KubeObject => ({
      metadata: {
        name,
        namespace: "a",
        get labels() {
          judged++;
          return {};
        },
      },
    });
    const counts = createLabelCounts(CONFIG_MAPS);
    for (let at = 0; at < 1_000; at++) counts.see({ type: "added", object: watched(`x-${at}`) });
    const before = judged;
    for (let at = 0; at < 100; at++) expect(counts.read(never).total).toBe(1_000);
    expect(judged).toBe(before);
  });
});
