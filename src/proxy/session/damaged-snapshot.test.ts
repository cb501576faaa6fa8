import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { routeDigest } from "../../mesh/contract/route-type.ts";
import { snapshotToJson, storedFromJson } from "./snapshot-file.ts";

const POD = { namespace: "shop", name: "pod", uid: "uid" };
const content = snapshot(table([subset("canary")], { prod: [0], test: [] }), { subset: "canary" });
const stored = { ...content, digest: routeDigest(content) };

it("a file with another namespace, subset or rule than were stored is not enforced", () => {
  const text = snapshotToJson(stored, POD);
  for (const [from, to] of [
    ['"prod"', '"prnd"'], // one bit
    ['"rules":[0],"places":["prod"]', '"rules":[],"places":["prod"]'],
    ['"subset":"canary","table"', '"subset":"canar9","table"'],
  ] as const) {
    const damaged = text.replace(from, to);
    expect(damaged, from).not.toBe(text);
    expect(() => storedFromJson(damaged, POD), from).toThrow();
  }
});
