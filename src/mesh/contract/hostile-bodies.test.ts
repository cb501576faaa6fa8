import { expect, it } from "vitest";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { PEERS } from "./peer-type.ts";
import { ResourceInvalidError } from "./resource-type.ts";
import { ROUTE } from "./route-type.ts";

const HEAD = { version: 2, digest: "d" };

function errorOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

it("a delta with a million wrong names has few problems, like a table", () => {
  const names = JSON.stringify(Array.from({ length: 1_000_000 }, () => "x"));
  const body = Buffer.from(`{"classes":[],"removed":${names},"fenced":[],"unfenced":[]}`);
  const error = errorOf(() => ROUTE.delta?.apply(snapshot(table([], { a: [] })), body, HEAD));
  expect(error).toBeInstanceOf(ResourceInvalidError); // is a RangeError: too many arguments
  expect((error as ResourceInvalidError).problems.length).toBeLessThanOrEqual(20);
});

it("peers of another version have few problems", () => {
  const body = Buffer.from(JSON.stringify({ peers: Array.from({ length: 30_000 }, () => ({})) }));
  const error = errorOf(() => PEERS.decode(body, HEAD));
  expect(error).toBeInstanceOf(ResourceInvalidError); // is a RangeError: too many arguments
  expect((error as ResourceInvalidError).problems.length).toBeLessThanOrEqual(20);
});
