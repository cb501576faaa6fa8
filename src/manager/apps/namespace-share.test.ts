import { expect, it } from "vitest";
import type { KubeObject } from "../../kube/types.ts";
import { APPS_SHARE, beyondShare } from "./namespace-share.ts";

const object = (name: string, day = 1, spec: unknown = {}) =>
  ({ metadata: { name, creationTimestamp: `2026-01-0${day}T00:00:00Z` }, spec }) as KubeObject;
const beyond = (objects: readonly KubeObject[], share = { count: 2, bytes: 1_000 }) =>
  [...beyondShare(objects, (one) => [one], share, "apps").keys()].map(({ metadata }) => metadata.name);

it("a newcomer takes no place of an older object, whatever its name and size are", () => {
  expect(beyond([object("a", 3), object("b", 2), object("c", 1)])).toEqual(["a"]);
  expect(beyond([object("a", 3, "x".repeat(600)), object("b", 2, "x".repeat(600))])).toEqual(["a"]);
});

it("of objects of one second the name decides, so all replicas agree", () => {
  expect(beyond([object("c"), object("a"), object("b")])).toEqual(["c"]);
});

it("an object that is too large leaves its place to smaller ones", () => {
  expect(beyond([object("a", 1, "x".repeat(1_001)), object("b", 2), object("c", 3)])).toEqual(["a"]);
});

it("as many apps as the webhook configurations have places for fit with 60 KiB each, the largest legitimate use", () => {
  const apps = Array.from({ length: 64 }, (_, at) => object(`app-${at}`, 1, "x".repeat(60 * 1024)));
  expect(beyond(apps, APPS_SHARE)).toEqual([]);
  expect(beyond([...apps, object("more", 2)], APPS_SHARE)).toEqual(["more"]);
});

it("the reason names the bound and what to do", () => {
  const [why] = beyondShare([object("a"), object("b")], (one) => [one], { count: 1, bytes: 4 * 1024 * 1024 }, "apps").values();
  expect(why).toBe(
    "the manager accepts at most 1 apps, and 4 MiB of their specs in a namespace, the oldest first; " +
      "delete some, make specs smaller, or use another namespace",
  );
});
