import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { createOlderPods } from "./older-pods.ts";

const pod = (namespace: string, name: string, uid = `uid-${name}`): Pod => ({ metadata: { namespace, name, uid } });

it("knows the pods of the first list for 30 s, and nobody who comes later", async () => {
  const clock = createFakeClock();
  const older = createOlderPods({ clock });
  const over: string[] = [];
  older.onOver((namespace) => over.push(namespace));
  expect(older.has(pod("shop", "a"))).toBe(false);
  older.listed("shop", [pod("shop", "a")]);
  await clock.advance(20_000);
  older.listed("store", [pod("store", "b")]);
  expect([older.has(pod("shop", "a")), older.has(pod("shop", "a", "anew")), older.has(pod("shop", "b"))]).toEqual([
    true,
    false,
    false,
  ]);
  await clock.advance(10_000);
  expect([older.has(pod("shop", "a")), older.has(pod("store", "b")), over]).toEqual([false, true, ["shop"]]);
  await clock.advance(20_000);
  expect([older.has(pod("store", "b")), over]).toEqual([false, ["shop", "store"]]);
});

it("knows for ever who was there before this manager led", async () => {
  const clock = createFakeClock();
  const older = createOlderPods({ clock });
  older.listed("shop", [pod("shop", "a")]);
  await clock.advance(60_000);
  expect([older.has(pod("shop", "a")), older.wasListed(pod("shop", "a")), older.wasListed(pod("shop", "b"))]).toEqual([
    false,
    true,
    false,
  ]);
  older.listed("shop", [pod("shop", "b")]); // all apps of the namespace were gone, and one is back
  expect([older.wasListed(pod("shop", "a")), older.wasListed(pod("shop", "b"))]).toEqual([false, true]);
});

it("forgets a namespace that has no app any more, until it is listed again", async () => {
  const clock = createFakeClock();
  const older = createOlderPods({ clock });
  older.listed("shop", [pod("shop", "a")]);
  older.left("shop");
  expect([older.has(pod("shop", "a")), older.wasListed(pod("shop", "a"))]).toEqual([false, false]);
  older.listed("shop", [pod("shop", "a")]);
  await clock.advance(29_999);
  expect([older.has(pod("shop", "a")), older.wasListed(pod("shop", "a"))]).toEqual([true, true]);
});
