// The list and watch loop of the example operator, against a fake library with streams that end in every possible way.
import type { KubernetesObject } from "@kubernetes/client-node";
import { afterEach, expect, test } from "vitest";
import { listWatch } from "../../../examples/operator/list-watch.ts";
import { eventually } from "../../support/eventually.ts";

type Done = (error: unknown) => void;
type OnEvent = (type: string, object: unknown) => void;
interface Stream {
  readonly from: unknown;
  readonly send: OnEvent;
  readonly end: Done;
}

const stopping = new AbortController();
afterEach(() => stopping.abort());

function object(name: string, version: string): KubernetesObject {
  return { metadata: { namespace: "a", name, resourceVersion: version } };
}

/** Runs the loop. The test acts as the server. */
function run(items: KubernetesObject[]) {
  const lists: string[] = [];
  const streams: Stream[] = [];
  const changed: string[] = [];
  const cache = new Map<string, KubernetesObject>();
  const world = { items, version: "10" };
  const controller = new AbortController();
  stopping.signal.addEventListener("abort", () => controller.abort());
  void listWatch(cache, {
    path: "/x",
    list: async () => {
      lists.push(world.version);
      return { metadata: { resourceVersion: world.version }, items: world.items };
    },
    watch: {
      async watch(_path, query, send, end) {
        streams.push({ from: query.resourceVersion, send, end });
        return new AbortController();
      },
    },
    onChange: ({ metadata }) => changed.push(`${metadata?.name}@${metadata?.resourceVersion}`),
    log: { info: () => undefined, error: () => undefined },
    signal: controller.signal,
  });
  const stream = async (index: number): Promise<Stream> => {
    await eventually(() => streams.length > index);
    return streams[index] as Stream;
  };
  return { lists, streams, changed, cache, world, stream };
}

test("the loop lists, then watches from the list's version", async () => {
  const { stream, changed, cache } = run([object("f", "7")]);
  const first = await stream(0);
  expect(first.from).toBe("10");
  first.send("ADDED", object("g", "11"));
  first.send("DELETED", object("f", "12"));
  expect(changed).toEqual(["f@7", "g@11", "f@12"]);
  expect([...cache.keys()]).toEqual(["a/g"]);
});

test("the loop resumes from the last version without a list after a stream ends or is silent for too long", async () => {
  const { stream, lists } = run([]);
  const first = await stream(0);
  first.send("ADDED", object("f", "11"));
  first.send("BOOKMARK", { metadata: { resourceVersion: "15" } });
  first.end(null);
  const second = await stream(1);
  expect(second.from).toBe("15");
  second.end(new DOMException("silence", "TimeoutError"));
  expect((await stream(2)).from).toBe("15");
  expect(lists).toHaveLength(1);
});

function endWithError({ send, end }: Stream, code: number): void {
  send("ERROR", { kind: "Status", code });
  end(null);
}

test.each([
  ["410 as an ERROR event", (stream: Stream) => endWithError(stream, 410)],
  ["410 as the HTTP status", (stream: Stream) => stream.end(Object.assign(new Error("Gone"), { statusCode: 410 }))],
  ["an error event of another code", (stream: Stream) => endWithError(stream, 500)],
  ["a reset connection", (stream: Stream) => stream.end(Object.assign(new Error("terminated"), { code: "ECONNRESET" }))],
])("after %s the loop lists again, and finds the new, changed and deleted objects", async (_name, fail) => {
  const { stream, world, lists, changed, cache } = run([object("kept", "1"), object("changed", "2"), object("gone", "3")]);
  const first = await stream(0);
  changed.length = 0;
  world.items = [object("kept", "1"), object("changed", "20"), object("new", "21")];
  world.version = "30";
  fail(first);
  expect((await stream(1)).from).toBe("30");
  expect(lists).toEqual(["10", "30"]);
  expect(changed).toEqual(["changed@20", "new@21", "gone@3"]);
  expect([...cache.keys()].sort()).toEqual(["a/changed", "a/kept", "a/new"]);
});

test("the loop waits between attempts at a server that refuses every watch", async () => {
  const { stream, streams } = run([]);
  const startedAt = performance.now();
  for (let index = 0; index < 4; index++) (await stream(index)).end(Object.assign(new Error("Gone"), { statusCode: 410 }));
  expect(performance.now() - startedAt).toBeGreaterThan(300);
  expect(streams).toHaveLength(4);
});
