import { describe, expect, it } from "vitest";
import { parseRequestInfo } from "../kube/request-info.ts";
import { createLabels } from "./metrics.ts";

const get = (resource: string) => parseRequestInfo("GET", `/apis/example.io/v1/${resource}`);

describe("createLabels", () => {
  it("gives a resource its own labels once the API server has answered for it", () => {
    const labels = createLabels(10);
    expect(labels(get("widgets"), 404)).toEqual({ verb: "list", group: "other", resource: "other" });
    expect(labels(get("widgets"), 200)).toEqual({ verb: "list", group: "example.io", resource: "widgets" });
    expect(labels(get("widgets"), 404)).toEqual({ verb: "list", group: "example.io", resource: "widgets" });
  });

  it("is bounded, however many resources a client makes up", () => {
    const labels = createLabels(3);
    const seen = new Set(Array.from({ length: 100 }, (_, index) => labels(get(`made-up-${index}`), 200).resource));
    expect(seen.size).toBe(4);
  });

  it("has a verb for what cannot be read", () => {
    const labels = createLabels(3);
    expect(labels(parseRequestInfo("GET", "/healthz"), 200)).toEqual({ verb: "get", group: "", resource: "" });
    expect(labels(undefined, 400).verb).toBe("unreadable");
  });
});
