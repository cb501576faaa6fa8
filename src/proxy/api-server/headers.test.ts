import { describe, expect, it } from "vitest";
import { forwardedHeaders, repliedHeaders } from "./headers.ts";

const names = (flat: readonly string[]) => flat.filter((_, index) => index % 2 === 0);

describe("forwardedHeaders", () => {
  it("passes the caller's headers and adds none", () => {
    const headers = { authorization: "Bearer a", accept: "application/json", "accept-encoding": "gzip", "user-agent": "op/1" };
    expect(forwardedHeaders(headers, true)).toEqual([
      "authorization",
      "Bearer a",
      "accept",
      "application/json",
      "accept-encoding",
      "gzip",
      "user-agent",
      "op/1",
    ]);
    expect(forwardedHeaders({}, true)).toEqual([]);
  });

  it("drops what belongs to the connection, and what the client names in it", () => {
    const headers = {
      host: "x",
      connection: "X-A, close",
      "x-a": "1",
      te: "trailers",
      "transfer-encoding": "chunked",
      upgrade: "h2c",
      expect: "100-continue",
      "x-b": "2",
    };
    expect(names(forwardedHeaders(headers, true))).toEqual(["x-b"]);
  });

  it("Connection does not remove the headers that identify the caller", () => {
    const headers = {
      connection: "authorization, impersonate-user, content-length",
      authorization: "Bearer a",
      "impersonate-user": "u",
      "content-length": "3",
    };
    expect(names(forwardedHeaders(headers, true))).toEqual(["authorization", "impersonate-user", "content-length"]);
  });

  it("drops X-Remote-*, repeats lists as lines, and drops the length of a body that was changed", () => {
    const headers = { "x-remote-user": "a", "x-remote-extra-b": "c", "impersonate-group": ["g1", "g2"], "content-length": "3" };
    expect(forwardedHeaders(headers, false)).toEqual(["impersonate-group", "g1", "impersonate-group", "g2"]);
  });
});

describe("repliedHeaders", () => {
  it("keeps the response's headers without those of the connection", () => {
    const headers = {
      "content-type": "a/b",
      connection: "keep-alive, x-hop",
      "x-hop": "1",
      "keep-alive": "timeout=5",
      "transfer-encoding": "chunked",
      warning: ["a", "b"],
    };
    expect(repliedHeaders(headers as never)).toEqual({ "content-type": "a/b", warning: ["a", "b"] });
  });
});
