import { expect, test } from "vitest";
import type { KubeObject, ObjectMeta } from "../kube/types.ts";
import { anyOf, changed, generationChanged, labelsChanged } from "./controller.ts";
import type { Change } from "./store.ts";

const updated = (previous: ObjectMeta, object: ObjectMeta): Change<KubeObject> => ({
  type: "updated",
  previous: { metadata: previous },
  object: { metadata: object },
});

test("each predicate compares its own part of an update", () => {
  const change = updated({ generation: 1, labels: { a: "1" }, annotations: {} }, { generation: 1, labels: { a: "2" } });
  expect([generationChanged, labelsChanged].map((predicate) => predicate(change))).toEqual([false, true]);
  expect(generationChanged(updated({ generation: 1 }, { generation: 2 }))).toBe(true);
  expect(generationChanged(updated({ generation: 1 }, { generation: 1, deletionTimestamp: "now" }))).toBe(true);
  expect(changed(({ metadata }) => metadata.labels)(change)).toBe(true);
});

test("additions and deletions always pass", () => {
  for (const type of ["added", "deleted"] as const) {
    const change: Change<KubeObject> = { type, object: { metadata: {} } };
    expect([generationChanged, labelsChanged, changed(() => 1)].every((predicate) => predicate(change))).toBe(true);
  }
});

test("anyOf passes what one predicate passes", () => {
  const change = updated({ generation: 1, labels: { a: "1" } }, { generation: 1, labels: { a: "2" } });
  expect(anyOf(generationChanged, labelsChanged)(change)).toBe(true);
  expect(anyOf(generationChanged)(change)).toBe(false);
});
