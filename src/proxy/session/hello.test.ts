import { expect, it } from "vitest";
import { routes } from "../../../test/support/test-routes.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { SnapshotMessage } from "../../wire/messages.ts";
import { snapshotFromWire } from "../../wire/snapshot-codec.ts";
import { helloOf } from "./hello.ts";
import { type Held, MAX_IN_DOUBT } from "./snapshot-intake.ts";

const version = (number: number): Snapshot => routes(number, { blue: [`n${number}`] });

/** Versions of what a hello says is held, the acknowledged first; "anything" for what no manager can read. */
function toldOf(held: Held): (number | "anything")[] {
  const { enforced, inDoubt } = helloOf({
    pod: { namespace: "shop", name: "shop-0", uid: "" },
    proxyVersion: "",
    version: 9,
    held,
  });
  const read = (message: SnapshotMessage) => {
    try {
      return snapshotFromWire(message).version;
    } catch {
      return "anything";
    }
  };
  return [...(enforced === null ? [] : [enforced]), ...inDoubt].map(read);
}

it("tells what was acknowledged, and what came into force since", () => {
  expect(toldOf({ acknowledged: undefined, inDoubt: [], mayHoldMore: false })).toEqual([]);
  expect(toldOf({ acknowledged: version(1), inDoubt: [version(2), version(3)], mayHoldMore: false })).toEqual([1, 2, 3]);
});

it("tells that it may hold anything besides what it knows of, which stays told: it is its own still", () => {
  expect(toldOf({ acknowledged: version(1), inDoubt: [], mayHoldMore: true })).toEqual([1, "anything"]);
  expect(toldOf({ acknowledged: undefined, inDoubt: [], mayHoldMore: true })).toEqual(["anything"]);
});

it("tells many in doubt as the newest and anything, so that a hello stays short", () => {
  const inDoubt = Array.from({ length: MAX_IN_DOUBT + 1 }, (_, index) => version(index + 2));
  expect(toldOf({ acknowledged: version(1), inDoubt, mayHoldMore: false })).toEqual([1, MAX_IN_DOUBT + 2, "anything"]);
});
