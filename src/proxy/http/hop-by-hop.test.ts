import { expect, it } from "vitest";
import { HOP_BY_HOP, namedInConnection } from "./hop-by-hop.ts";

it("a Connection header names further headers of the connection, however they are written", () => {
  expect(namedInConnection("Close, X-One ,x-two")).toEqual(["close", "x-one", "x-two"]);
});

it("a Connection header removes no header that says who asks or how long the body is", () => {
  expect(namedInConnection("authorization, Content-Length, content-type, host")).toEqual([]);
});

it("the framing and the credentials of a connection stay on it", () => {
  for (const name of ["connection", "transfer-encoding", "te", "trailer", "upgrade", "proxy-authorization"])
    expect(HOP_BY_HOP.has(name)).toBe(true);
});
