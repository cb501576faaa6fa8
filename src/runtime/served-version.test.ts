import { expect, it } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { StatusError } from "../kube/status.ts";
import { AGAIN_MS, createServedVersion } from "./served-version.ts";

function worldOf(kinds: Readonly<Record<string, readonly string[]>>) {
  const world = { kinds, asked: [] as string[], isDown: false };
  const clock = createFakeClock();
  const served = createServedVersion({
    client: {
      request: async ({ path }) => {
        world.asked.push(path);
        if (world.isDown) throw new StatusError("ServiceUnavailable", "down");
        const resources = world.kinds[path.split("/").at(-1) ?? ""];
        if (resources === undefined) throw new StatusError("NotFound", "no such page");
        return { resources: resources.map((name) => ({ name })) };
      },
    },
    clock,
    group: "g",
    resource: "foos",
    versions: ["v1", "v2"],
  });
  return { world, clock, read: () => served.read(new AbortController().signal) };
}

it("is the first of the versions that has the kind; the group may have other kinds", async () => {
  expect(await worldOf({ v1: ["foos"], v2: ["foos"] }).read()).toBe("v1");
  expect(await worldOf({ v1: ["bars"], v2: ["foos"] }).read()).toBe("v2");
  expect(await worldOf({ v2: ["foos"] }).read()).toBe("v2");
  expect(await worldOf({ v1: ["bars"] }).read()).toBeUndefined();
  expect(await worldOf({}).read()).toBeUndefined();
});

it("is read again after some time, so that a kind that arrives or leaves is noticed", async () => {
  const { world, clock, read } = worldOf({});
  expect(await read()).toBeUndefined();
  world.kinds = { v1: ["foos"] };
  expect([await read(), world.asked.length]).toEqual([undefined, 2]);
  await clock.advance(AGAIN_MS);
  expect(await read()).toBe("v1");
  world.kinds = {};
  await clock.advance(AGAIN_MS);
  expect(await read()).toBeUndefined();
});

it("an API server that does not answer is an error, and not an absent kind", async () => {
  const { world, read } = worldOf({ v1: ["foos"] });
  world.isDown = true;
  await expect(read()).rejects.toThrow("down");
  world.isDown = false;
  expect(await read()).toBe("v1");
});
