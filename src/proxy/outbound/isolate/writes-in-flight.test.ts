import { describe, expect, it } from "vitest";
import { callOf } from "../../../../test/support/layer-call.ts";
import { recordingSink, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { untilWritten } from "./isolate.ts";

async function reply(method: string, target: string) {
  const source = scriptedSource();
  let count = 0;
  const { body } = await untilWritten(
    callOf(method, target),
    async () => ({ status: 200, headers: {}, body: source }),
    () => count++,
  );
  if (body === null || body instanceof Uint8Array) throw new Error("no source");
  return { source, body, count: () => count };
}

describe("a write is done", () => {
  it.each(["pods/x", "pods/x/status", "pods/x/eviction", "pods/x/ephemeralcontainers"])(
    "at the head of its answer, since the API server answers after its commit (%s), however slowly the client reads",
    async (path) => {
      const { count, body, source } = await reply("PUT", `/api/v1/namespaces/a/${path}`);
      expect(count()).toBe(1);
      body.open(recordingSink());
      source.end();
      expect(count()).toBe(1);
    },
  );

  it.each(["services/x/proxy", "services/x/proxy/some/path", "pods/x/proxy"])(
    "at the end of its answer where another server gives it (%s)",
    async (path) => {
      const { count, body, source } = await reply("POST", `/api/v1/namespaces/a/${path}`);
      expect(count()).toBe(0);
      body.open(recordingSink());
      source.write("half");
      expect(count()).toBe(0);
      source.end();
      expect(count()).toBe(1);
    },
  );

  it("when nobody wants its answer", async () => {
    const { count, body } = await reply("POST", "/api/v1/namespaces/a/pods/x/proxy");
    body.cancel(new Error("gone"));
    expect(count()).toBe(1);
  });
});
