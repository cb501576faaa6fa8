// Contract: watches.
import { describe, expect, it } from "vitest";
import { brief, MERGE_PATCH, type WatchEvent } from "./client.ts";
import { type Context, secret, WIDGETS, widget } from "./context.ts";

const named = (type: string, name: string) => (event: WatchEvent) => event.type === type && event.object.metadata?.name === name;

export function describeWatches(context: Context): void {
  async function place() {
    const namespace = await context.namespace();
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    return { namespace, path };
  }

  describe("watches", () => {
    it("begin with the current state if the request has no version, and continue with changes", async () => {
      const { path } = await place();
      await context.client.post(path, secret("old"));
      const watch = await context.client.watch(`${path}?watch=true`);
      await watch.until(named("ADDED", "old"));
      await context.client.post(path, secret("new"));
      await context.client.patch(`${path}/new`, MERGE_PATCH, { metadata: { labels: { a: "b" } } });
      await context.client.delete(`${path}/new`);
      await watch.until(named("DELETED", "new"));
      watch.close();
      expect(watch.events.map(brief)).toEqual(["ADDED old", "ADDED new", "MODIFIED new", "DELETED new"]);
    });

    it("resume after a version without a missing event, and give a deletion its own version", async () => {
      const { path } = await place();
      const { body: list } = await context.client.get(path);
      const { body: created } = await context.client.post(path, secret("one"));
      await context.client.delete(`${path}/one`);
      const watch = await context.client.watch(`${path}?watch=1&resourceVersion=${list.metadata.resourceVersion}`);
      const deleted = await watch.until(named("DELETED", "one"));
      watch.close();
      expect(watch.events.map(brief)).toEqual(["ADDED one", "DELETED one"]);
      expect(Number(deleted.object.metadata.resourceVersion)).toBeGreaterThan(Number(created.metadata.resourceVersion));
    });

    it("show objects that enter and leave a label selection as ADDED and DELETED", async () => {
      const { path } = await place();
      const watch = await context.client.watch(`${path}?watch=true&labelSelector=app%3Dx`);
      await context.client.post(path, secret("one"));
      const entered = await context.client.patch(`${path}/one`, MERGE_PATCH, { metadata: { labels: { app: "x" } } });
      await watch.until(named("ADDED", "one"));
      const left = await context.client.patch(`${path}/one`, MERGE_PATCH, { metadata: { labels: { app: "y" } } });
      const event = await watch.until(named("DELETED", "one"));
      watch.close();
      expect(watch.events.map(brief)).toEqual(["ADDED one", "DELETED one"]);
      expect(watch.events[0]?.object.metadata.resourceVersion).toBe(entered.body.metadata.resourceVersion);
      expect(event.object.metadata.resourceVersion).toBe(left.body.metadata.resourceVersion);
      expect(event.object.metadata.labels).toEqual({ app: "x" });
    });

    it("show only the object that a field selector names", async () => {
      const { path } = await place();
      const watch = await context.client.watch(`${path}?watch=true&fieldSelector=metadata.name%3Done`);
      await context.client.post(path, secret("two"));
      await context.client.post(path, secret("one"));
      await watch.until(named("ADDED", "one"));
      watch.close();
      expect(watch.events.map(brief)).toEqual(["ADDED one"]);
    });

    it("work on the legacy watch path", async () => {
      const { namespace, path } = await place();
      await context.client.post(path, secret("one"));
      const watch = await context.client.watch(`/api/v1/watch/namespaces/${namespace}/secrets`);
      await watch.until(named("ADDED", "one"));
      watch.close();
    });

    it("stream a list: initial events, then the bookmark that ends them", async () => {
      const { path } = await place();
      await context.client.post(path, secret("b"));
      await context.client.post(path, secret("a"));
      const query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      const watch = await context.client.watch(`${path}?${query}`);
      const bookmark = await watch.until((event) => event.type === "BOOKMARK");
      expect(bookmark.object.kind).toBe("Secret");
      expect(bookmark.object.metadata.annotations).toEqual({ "k8s.io/initial-events-end": "true" });
      expect(Number(bookmark.object.metadata.resourceVersion)).toBeGreaterThan(0);
      expect(watch.events.map(({ type }) => type)).toEqual(["ADDED", "ADDED", "BOOKMARK"]);
      await context.client.post(path, secret("c"));
      await watch.until(named("ADDED", "c"));
      watch.close();
    });

    it.each(["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=true&resourceVersionMatch=Exact"])(
      "are refused with ?watch&%s",
      async (query) => {
        const { path } = await place();
        const { code } = await context.client.get(`${path}?watch=true&resourceVersion=1&${query}`);
        expect(code).toBe(422);
      },
    );

    it("end cleanly after timeoutSeconds", async () => {
      const { path } = await place();
      const watch = await context.client.watch(`${path}?watch=true&timeoutSeconds=1`);
      await watch.ended;
      expect(watch.events).toEqual([]);
    });

    it("show custom resources in the version of the path", async () => {
      const { namespace } = await place();
      const watch = await context.client.watch(
        `${WIDGETS.replace("/v1", "/v1beta1")}/namespaces/${namespace}/widgets?watch=true`,
      );
      await context.client.post(`${WIDGETS}/namespaces/${namespace}/widgets`, widget("one"));
      const { object } = await watch.until(named("ADDED", "one"));
      watch.close();
      expect(object.apiVersion).toMatch(/\/v1beta1$/);
    });

    it("answer 410 if a client resumes from a version that is too old", async () => {
      const { path } = await place();
      const watch = await context.client.watch(`${path}?watch=true&resourceVersion=1`);
      const { object } = await watch.until(({ type }) => type === "ERROR");
      expect(object).toMatchObject({ kind: "Status", status: "Failure", reason: "Expired", code: 410 });
      expect(object.message).toContain("too old resource version");
      await watch.ended;
    });

    it("are refused with field selectors that the kind does not support", async () => {
      const { path } = await place();
      expect((await context.client.get(`${path}?watch=true&fieldSelector=spec.foo%3Da`)).code).toBe(400);
    });
  });
}
