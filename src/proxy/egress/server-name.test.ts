import { expect, it } from "vitest";
import { serverNameProblem } from "./server-name.ts";

it.each([
  ["a.example", "a.example", true, undefined],
  ["b.example", "a.example", false, "sni-mismatch"],
  ["b.example", "10.0.0.1", false, "sni-mismatch"],
  [undefined, "a.example", true, "no-sni"],
  [undefined, "a.example", false, undefined],
  [undefined, "10.0.0.1", true, undefined],
  [undefined, "2001:db8::1", true, undefined],
])("a client that names %s in a tunnel to %s (allow-list: %s): %s", (serverName, host, isAllowList, expected) => {
  expect(serverNameProblem({ kind: "hello", serverName }, host, isAllowList)).toBe(expected);
});

it("a client without TLS is a problem, with and without an allow-list", () => {
  for (const isAllowList of [true, false])
    expect(serverNameProblem({ kind: "not-tls" }, "a.example", isAllowList)).toBe("no-tls");
});
