import { describe, expect, it } from "vitest";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { byResource, verbOf } from "./metrics.ts";

const get = (resource: string, group = "example.io") => parseRequestInfo("GET", `/apis/${group}/v1/${resource}`);
const labels = (max: number) => byResource(max, (group, resource) => `${group}/${resource}`);

describe("byResource", () => {
  it("gives a resource its own once the API server has answered for it", () => {
    const of = labels(10);
    expect(of(get("widgets"), 404, true)).toBe("other/other");
    expect(of(get("widgets"), 200, true)).toBe("example.io/widgets");
    expect(of(get("widgets"), 404, true)).toBe("example.io/widgets");
    expect(of(get("gadgets"), 200, true)).toBe("example.io/gadgets");
    expect(of(get("widgets", "other.io"), 404, true)).toBe("other/other");
  });

  it("gives none to what the proxy has answered itself, such as an idle watch of a resource that a client made up", () => {
    const of = labels(10);
    expect(of(get("widgets"), 200, false)).toBe("other/other");
    of(get("widgets"), 200, true);
    expect(of(get("widgets"), 200, false)).toBe("example.io/widgets");
  });

  it("is bounded, however many resources a client makes up", () => {
    const of = labels(3);
    const seen = new Set(Array.from({ length: 100 }, (_, index) => of(get(`made-up-${index}`, `g${index % 7}.io`), 200, true)));
    expect(seen.size).toBe(4);
  });

  it("has a place for what is about no resource and for what cannot be read", () => {
    expect(labels(3)(parseRequestInfo("GET", "/healthz"), 200, true)).toBe("/");
    expect(labels(3)(undefined, 400, false)).toBe("/");
    expect(verbOf(undefined)).toBe("unreadable");
    expect(verbOf(parseRequestInfo("GET", "/healthz"))).toBe("get");
  });
});
