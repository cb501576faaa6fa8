import { describe, expect, it } from "vitest";
import { formatAddress, localAddress, parseAddress } from "./settings.ts";

describe("parseAddress", () => {
  it.each([
    ["127.0.0.1:5443", { host: "127.0.0.1", port: 5443 }],
    ["[::1]:0", { host: "::1", port: 0 }],
    ["::1:5443", undefined],
    ["host", undefined],
    ["host:70000", undefined],
    [":80", undefined],
  ])("%s", (text, address) => {
    expect(parseAddress(text)).toEqual(address);
  });
});

it.each([
  ["0.0.0.0", "127.0.0.1:80"],
  ["::", "127.0.0.1:80"],
  ["::1", "[::1]:80"],
  ["192.0.2.1", "192.0.2.1:80"],
])("a process of the host reaches a server that listens on %s at %s", (host, text) => {
  expect(formatAddress(localAddress({ host, port: 80 }))).toBe(text);
});
