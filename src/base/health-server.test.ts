import { describe, expect, it } from "vitest";
import { isFromInside } from "./health-server.ts";

const asked = (remoteAddress: string | undefined, headers: Record<string, string> = { host: "localhost:5441" }) =>
  isFromInside({ headers, socket: { remoteAddress } });

describe("a client of a page", () => {
  it.each([
    ["127.0.0.1", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["127.0.0.6", false], // Istio's sidecar forwards requests of the pod network from here
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
    ["evil.example:5441", false], // a foreign name that resolves to this address, so that a web page can read the answer
    ["localhost.evil.example", false],
    ["127.0.0.1.evil.example", false],
    ["10.1.2.3:5441", false],
    ["localhost:x", false],
    ["", false],
  ])("with the host %j is inside the pod: %s", (host, inside) => {
    expect(asked("127.0.0.1", { host })).toBe(inside);
  });

  it.each(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-client-cert", "forwarded", "via"])(
    "is not inside if a proxy forwards its request (%s)",
    (name) => {
      expect(asked("127.0.0.1", { host: "localhost", [name]: "x" })).toBe(false);
    },
  );

  it("is not inside without a host", () => {
    expect(asked("127.0.0.1", {})).toBe(false);
  });
});
