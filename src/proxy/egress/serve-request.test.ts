import { describe, expect, it } from "vitest";
import { passedOn, requestHeaders } from "./serve-request.ts";
import { targetOf } from "./target.ts";

const sent = (raw: readonly string[], url = "http://a.example/") => requestHeaders(raw, targetOf("GET", url, {}));

describe("the headers of a request", () => {
  it("keep their order, case and repetitions, after the target's host", () => {
    const own = [
      "X-B",
      "1",
      "x-a",
      "2",
      "Set-Cookie",
      "c=1",
      "Set-Cookie",
      "c=2",
      "Content-Length",
      "3",
      "Authorization",
      "Bearer t",
    ];
    expect(sent(["Host", "proxy", ...own])).toEqual(["Host", "a.example", ...own]);
  });

  it.each([
    ["http://a.example:80/", "a.example"],
    ["http://a.example:443/", "a.example:443"],
    ["https://a.example/", "a.example"],
    ["http://[2001:db8::1]:8080/", "[2001:db8::1]:8080"],
  ])("have the host of %s", (url, host) => expect(sent([], url)).toEqual(["Host", host]));

  it("lose what is for this connection, for this proxy, or named by Connection", () => {
    const hops = [
      "Connection",
      "keep-alive, X-Hop , Authorization",
      "X-Hop",
      "1",
      "Keep-Alive",
      "1",
      "Proxy-Connection",
      "close",
    ];
    const proxy = [
      "Proxy-Authorization",
      "x",
      "TE",
      "trailers",
      "Upgrade",
      "h2c",
      "Expect",
      "100-continue",
      "Mesh-Real-Endpoint",
      "x",
    ];
    expect(sent([...hops, ...proxy, "Authorization", "Bearer t"])).toEqual(["Host", "a.example", "Authorization", "Bearer t"]);
  });

  it("say that a body comes in chunks, also with a method that has none as a rule", () => {
    expect(sent(["Transfer-Encoding", "chunked"])).toEqual(["Host", "a.example", "Transfer-Encoding", "chunked"]);
  });
});

it("the headers of an answer lose what is for the connection alone", () => {
  const kept = ["Content-Length", "3", "Set-Cookie", "a=1", "Set-Cookie", "b=2", "Date", "now"];
  expect(passedOn([...kept, "Connection", "close, X-Hop", "X-Hop", "1", "Transfer-Encoding", "chunked"])).toEqual(kept);
});
