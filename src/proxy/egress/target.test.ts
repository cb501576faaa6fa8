import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { EgressError } from "./egress-error.ts";
import { targetOf } from "./target.ts";

const read = (line: string, endpoint?: string) => {
  const [method = "", target = ""] = line.split(" ");
  const {
    scheme,
    host,
    port,
    path = "(tunnel)",
    query,
  } = targetOf(method, target, endpoint === undefined ? {} : { "mesh-real-endpoint": endpoint });
  return `${scheme} ${host} ${port} ${path}${query}`;
};

describe("targetOf", () => {
  it.each([
    ["CONNECT a.example:443", "https a.example 443 (tunnel)"],
    ["CONNECT A.Example.:8443", "https a.example 8443 (tunnel)"],
    ["CONNECT a.example..:443", "https a.example 443 (tunnel)"],
    ["CONNECT [2001:DB8::0:1]:443", "https 2001:db8::1 443 (tunnel)"],
    ["CONNECT 0x7f.1:443", "https 127.0.0.1 443 (tunnel)"],
    ["CONNECT 2130706433:443", "https 127.0.0.1 443 (tunnel)"],
    ["CONNECT [::ffff:127.0.0.1]:1", "https 127.0.0.1 1 (tunnel)"],
    ["GET http://a.example", "http a.example 80 /"],
    ["GET HTTP://a.example:8080/v1/x?y=/../z", "http a.example 8080 /v1/x?y=/../z"],
    ["GET http://a.example?x=1", "http a.example 80 /?x=1"],
    ["GET http://bücher.example/%E2", "http xn--bcher-kva.example 80 /%E2"],
    ["GET https://a.example/v1", "https a.example 443 /v1"],
    ["GET http://a.example//v1/", "http a.example 80 //v1/"],
    ["GET http://a.example/..a/.b/c..", "http a.example 80 /..a/.b/c.."],
  ])("%s", (line, expected) => expect(read(line)).toBe(expected));

  it.each([
    ["GET /", "https://a.example/foo?x=1", "https a.example 443 /foo?x=1"],
    ["GET /bar?y=2", "https://a.example/foo?x=1", "https a.example 443 /foo/bar?x=1&y=2"],
    ["GET /bar?y=2", "https://a.example:8443", "https a.example 8443 /bar?y=2"],
    ["GET http://127.0.0.1:15002/bar", "https://a.example/foo/", "https a.example 443 /foo/bar"],
    ["GET /", "http://a.example/foo", "http a.example 80 /foo"],
  ])("%s with Mesh-Real-Endpoint %s", (line, endpoint, expected) => expect(read(line, endpoint)).toBe(expected));

  it.each([
    "CONNECT a.example",
    "CONNECT :443",
    "CONNECT .:443",
    "GET http://../x",
    "CONNECT a.example:0",
    "CONNECT a.example:65536",
    "CONNECT user@a.example:443",
    "CONNECT a.example/x:443",
    "CONNECT a.example:1:443",
    "CONNECT [::1:443",
    "GET /healthz",
    "GET *",
    "GET ftp://a.example/",
    "GET http://",
    "GET http:///x",
    "GET http://user:word@a.example/",
    "GET http://a.example/v1/../admin",
    "GET http://a.example/v1/%2E%2e/admin",
    "GET http://a.example/v1/..\\admin",
    "GET http://a.example/v1/..%2Fadmin",
    "GET http://a.example/v1%5c../admin",
    "GET http://a.example/v1/..;/admin",
    "GET http://a.example/x#fragment",
    `CONNECT ${"a".repeat(254)}:443`,
    "GET http://a%00.example/",
  ])("refuses %s", (line) => expect(() => read(line)).toThrow(EgressError));
});

it.each(["https://a.example/x y", "https://a.example/x?y z", "https://a.example/x, https://b.example/y", "https://a.example/\t"])(
  "refuses Mesh-Real-Endpoint %j, which no request line can carry",
  (endpoint) => expect(() => read("GET /", endpoint)).toThrow(EgressError),
);

it("any text is read into one form that reads the same again, or refused", () => {
  const text = fc.oneof(
    fc.string(),
    fc.webUrl({ withQueryParameters: true }),
    fc
      .tuple(
        fc.constantFrom("http://", "https://", "HTTP://[", ""),
        fc.string(),
        fc.constantFrom(":443", "]:80", "/../x", "@a/", ""),
      )
      .map((all) => all.join("")),
  );
  fc.assert(
    fc.property(fc.constantFrom("GET", "CONNECT"), text, fc.option(text), (method, target, endpoint) => {
      try {
        const read = targetOf(method, target, endpoint === null ? {} : { "mesh-real-endpoint": endpoint });
        const authority = `${read.host.includes(":") ? `[${read.host}]` : read.host}:${read.port}`;
        const again = method === "CONNECT" ? authority : `${read.scheme}://${authority}${read.path}${read.query}`;
        expect({ ...targetOf(method, again, {}), headers: {} }).toEqual({ ...read, headers: {} });
      } catch (error) {
        if (!(error instanceof EgressError)) throw error;
      }
    }),
    budget(2_000),
  );
});
