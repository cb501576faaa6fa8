import { describe, expect, it } from "vitest";
import { isFromInside } from "./health-server.ts";

const asked = (remoteAddress: string | undefined, headers: Record<string, string> = { host: "localhost:5441" }) =>
  isFromInside({ headers, socket: { remoteAddress } });

describe("a reader of a page", () => {
  it.each([
    ["127.0.0.1", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["127.0.0.6", false], // from which Istio's sidecar hands on what comes from the pod network
    ["127.8.8.8", false],
    ["10.244.0.7", false],
    ["::ffff:10.244.0.7", false],
    ["::ffff:127.0.0.6", false],
    ["fd00::127", false],
    ["1127.0.0.1", false],
    [undefined, false],
  ])("at %s is inside the pod: %s", (address, inside) => {
    expect(asked(address)).toBe(inside);
  });

  it.each([
    ["localhost", true],
    ["LocalHost:1", true],
    ["127.0.0.1:5441", true],
    ["[::1]:5441", true],
    ["[::1]", true],
    ["evil.example:5441", false], // a name of somebody else's that leads here, so that a browser's page may read it
    ["localhost.evil.example", false],
    ["127.0.0.1.evil.example", false],
    ["10.1.2.3:5441", false],
    ["localhost:x", false],
    ["", false],
  ])("that asks for the host %j is: %s", (host, inside) => {
    expect(asked("127.0.0.1", { host })).toBe(inside);
  });

  it.each(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-client-cert", "forwarded", "via"])(
    "is not when a proxy speaks for it (%s)",
    (name) => {
      expect(asked("127.0.0.1", { host: "localhost", [name]: "x" })).toBe(false);
    },
  );

  it("is not without a host", () => {
    expect(asked("127.0.0.1", {})).toBe(false);
  });
});
