import { describe, expect, it } from "vitest";
import { parseAddress } from "./settings.ts";

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
