import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { CONFIG_MAPS } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { createPatcher } from "./patcher.ts";

const { signal } = new AbortController();
const labels = { key: "value" };

function world(names: readonly string[], perSecond: number) {
  const [client, clock] = [createFakeKubeClient(), createFakeClock()];
  for (const name of names) client.put(CONFIG_MAPS, { metadata: { namespace: "a", name } });
  const patcher = createPatcher({ client, clock, perSecond });
  const missing = () =>
    names.flatMap((name) => {
      const object = client.read(CONFIG_MAPS, { namespace: "a", name });
      return object === undefined || object.metadata.labels?.key === "value" ? [] : [{ object, labels }];
    });
  const patches = () => client.calls.filter(({ verb }) => verb === "patch").map(({ name }) => name);
  return { client, clock, patcher, missing, patches };
}

it("patches so many each second and not more", async () => {
  const { clock, patcher, missing, patches } = world(["a", "b", "c", "d", "e"], 2);
  const first = patcher.patch(CONFIG_MAPS, missing(), signal);
  await clock.advance(499);
  expect(patches()).toEqual(["a"]);
  await clock.advance(1);
  expect(await first).toBe(1);
  expect(patches()).toEqual(["a", "b"]);
  const second = patcher.patch(CONFIG_MAPS, missing(), signal);
  await clock.advance(1_000);
  await second;
  expect(patches()).toEqual(["a", "b", "c", "d"]);
});

it("an object that cannot be patched is named, and does not keep the others from their labels", async () => {
  const { client, clock, patcher, missing, patches } = world(["a", "b"], 1_000);
  client.before = ({ name }) => {
    if (name === "a") throw new StatusError("Invalid", "it is broken");
  };
  const all = missing();
  const patched = patcher.patch(CONFIG_MAPS, all, signal);
  await clock.advance(10);
  await patched;
  expect(client.read(CONFIG_MAPS, { namespace: "a", name: "b" })?.metadata.labels).toEqual(labels);
  expect(patcher.failureOf(CONFIG_MAPS, all)).toBe("patching a/a: it is broken");
  expect(await patcher.patch(CONFIG_MAPS, missing(), signal)).toBe(30_000 - 10);
  expect(patches()).toEqual(["a", "b"]);
  client.before = () => undefined;
  await clock.advance(30_000);
  const again = patcher.patch(CONFIG_MAPS, missing(), signal);
  await clock.advance(10);
  await again;
  expect(missing()).toEqual([]);
});

it("an object is not patched again before the watch can have shown the patch", async () => {
  const { clock, patcher, missing, patches } = world(["a"], 1_000);
  const seen = missing();
  await patcher.patch(CONFIG_MAPS, seen, signal);
  expect(await patcher.patch(CONFIG_MAPS, seen, signal)).toBe(5_000);
  expect(patches()).toEqual(["a"]);
  await clock.advance(5_000);
  await patcher.patch(CONFIG_MAPS, seen, signal);
  expect(patches()).toEqual(["a", "a"]);
});

it("an object that is gone needs no labels", async () => {
  const { client, patcher, missing } = world(["a"], 1_000);
  const seen = missing();
  client.remove(CONFIG_MAPS, { namespace: "a", name: "a" });
  await patcher.patch(CONFIG_MAPS, seen, signal);
  expect(patcher.failureOf(CONFIG_MAPS, seen)).toBeUndefined();
});
