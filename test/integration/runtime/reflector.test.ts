// The reflector against failures of networks and servers: resets, truncated lines, expiry, silence, errors and slow answers.
// A scripted HTTPS server causes them. localkube.test.ts tests the reflector without failures.
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { PODS, type Pod } from "../../../src/kube/client/resources.ts";
import { createReflector, type Reflector } from "../../../src/runtime/reflector.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface World {
  readonly api: FakeApi;
  readonly reflector: Reflector<Pod>;
  readonly changes: string[];
  /** The requests so far: "list", or "watch" with its version. */
  requests(): string[];
}

/** The server's answers to each list and each watch, in order. The last answer repeats. */
interface Script {
  readonly lists: readonly ((res: ServerResponse, req: IncomingMessage) => void)[];
  readonly watches: readonly ((res: ServerResponse, req: IncomingMessage) => void)[];
}

// The reflector's backoff runs forty times as fast, so that the test waits only for real I/O.
const fastClock = { ...systemClock, after: (delayMs: number, run: () => void) => systemClock.after(delayMs / 40, run) };

async function setUp({ lists, watches }: Script, silenceMs = 3_600_000): Promise<World> {
  const requests: string[] = [];
  let listed = 0;
  let watched = 0;
  const api = await startFakeApi((req, res) => {
    const query = new URL(req.url ?? "", "https://api").searchParams;
    if (query.get("watch") === null) {
      requests.push("list");
      lists[Math.min(listed++, lists.length - 1)]?.(res, req);
    } else {
      requests.push(`watch ${query.get("resourceVersion")}`);
      watches[Math.min(watched++, watches.length - 1)]?.(res, req);
    }
  });
  const connection = { server: api.url, caPem: api.ca.certPem, token: () => "secret", userAgent: "test" };
  const client = createKubeClient(connection, { timeoutMs: 60_000 });
  const log = silentLogger();
  // The client measures silenceMs with the real clock.
  const reflector = createReflector({ client, resource: PODS, clock: fastClock, random: () => 0, log, silenceMs });
  const changes: string[] = [];
  reflector.store.onChange(({ type, object }) => changes.push(`${type} ${object.metadata.name}`));
  await reflector.start(new AbortController().signal);
  closing.push(
    () => api.close(),
    () => client.close(),
    () => reflector.stop(),
  );
  return { api, reflector, changes, requests: () => [...requests] };
}

const pod = (name: string, version: number) => ({
  metadata: { namespace: "a", name, uid: `uid-${name}`, resourceVersion: String(version) },
});
const event = (type: string, name: string, version: number) =>
  `${JSON.stringify({ type, object: { kind: "Pod", apiVersion: "v1", ...pod(name, version) } })}\n`;
const list =
  (version: number, ...names: string[]) =>
  (res: ServerResponse) =>
    res
      .setHeader("content-type", "application/json")
      .end(JSON.stringify({ metadata: { resourceVersion: String(version) }, items: names.map((name) => pod(name, version)) }));
const quiet = (res: ServerResponse) => res.writeHead(200, { "content-type": "application/json" }).flushHeaders();
/** Writes the texts and leaves the stream open. */
const respond =
  (...texts: string[]) =>
  (res: ServerResponse) => {
    quiet(res);
    for (const text of texts) res.write(text);
  };

test("a watch resumes from the last event after a reset, without a list", async () => {
  const reset = (res: ServerResponse) => {
    respond(event("ADDED", "x", 11))(res);
    res.write(event("ADDED", "y", 12), () => setImmediate(() => res.socket?.destroy()));
  };
  const { changes, requests } = await setUp({ lists: [list(10)], watches: [reset, respond(event("ADDED", "z", 13))] });
  await eventually(() => expect(changes).toEqual(["added x", "added y", "added z"]));
  expect(requests()).toEqual(["list", "watch 10", "watch 12"]);
});

test("half a line is no event: the watch resumes from the event before", async () => {
  const truncated = (res: ServerResponse) => {
    quiet(res);
    res.end(event("ADDED", "x", 11) + event("ADDED", "y", 12).slice(0, 40));
  };
  const { changes, requests } = await setUp({ lists: [list(10)], watches: [truncated, respond(event("ADDED", "y", 12))] });
  await eventually(() => expect(changes).toEqual(["added x", "added y"]));
  expect(requests()).toEqual(["list", "watch 10", "watch 11"]);
});

test("an event in many pieces, split within a character, is one event", async () => {
  const bytes = Buffer.from(event("ADDED", "x-ü-漢", 11));
  const pieces = (res: ServerResponse) => {
    quiet(res);
    let at = 0;
    const next = () => {
      if (at >= bytes.length) return;
      res.write(bytes.subarray(at, at + 3), () => setImmediate(next));
      at += 3;
    };
    next();
  };
  const { changes } = await setUp({ lists: [list(10)], watches: [pieces] });
  await eventually(() => expect(changes).toEqual(["added x-ü-漢"]));
});

test("the reflector lists again after a 410 event, and missing objects leave the store", async () => {
  const expired = JSON.stringify({
    type: "ERROR",
    object: { kind: "Status", status: "Failure", reason: "Expired", code: 410, message: "too old" },
  });
  const { changes, requests, reflector } = await setUp({
    lists: [list(10, "x", "y"), list(20, "y", "z")],
    watches: [respond(event("ADDED", "w", 11), `${expired}\n`), quiet],
  });
  await eventually(() => expect(changes).toHaveLength(7));
  expect(changes.slice(3)).toEqual(["deleted x", "deleted w", "updated y", "added z"]);
  expect(reflector.store.list().map(({ metadata }) => metadata.name)).toEqual(["y", "z"]);
  await eventually(() => expect(requests()).toEqual(["list", "watch 10", "list", "watch 20"]));
});

test("the reflector lists again after a 410 answer instead of a stream", async () => {
  const gone = (res: ServerResponse) =>
    res
      .writeHead(410)
      .end(JSON.stringify({ kind: "Status", status: "Failure", reason: "Expired", code: 410, message: "too old" }));
  const { requests, reflector } = await setUp({ lists: [list(10), list(20, "x")], watches: [gone, quiet] });
  await eventually(() => expect(reflector.store.size).toBe(1));
  await eventually(() => expect(requests()).toEqual(["list", "watch 10", "list", "watch 20"]));
});

test("a silent connection is closed, and the watch resumes from the bookmark", async () => {
  const bookmark = `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: "15" } } })}\n`;
  const { changes, requests, api } = await setUp(
    { lists: [list(10)], watches: [respond(bookmark), respond(event("ADDED", "x", 16), bookmark)] },
    300,
  );
  await eventually(() => expect(changes).toEqual(["added x"]));
  expect(requests().slice(0, 3)).toEqual(["list", "watch 10", "watch 15"]);
  await eventually(() => expect(api.open).toBeLessThanOrEqual(2));
});

test("the reflector retries after errors of the server, in lists and in watches", async () => {
  const error = (res: ServerResponse) => res.writeHead(500, { "content-type": "text/plain" }).end("etcdserver: leader changed");
  const refuse = (res: ServerResponse) => res.socket?.destroy();
  const { changes, requests } = await setUp({
    lists: [error, refuse, list(10, "x")],
    watches: [error, error, respond(event("DELETED", "x", 11))],
  });
  await eventually(() => expect(changes).toEqual(["added x", "deleted x"]));
  const verbs = requests();
  expect(verbs.slice(-3)).toEqual(["watch 10", "watch 10", "watch 10"]);
  // A GET that was reset on a pooled connection may be sent again at once.
  expect(verbs.filter((verb) => verb === "list").length).toBeGreaterThanOrEqual(3);
});

test("an answer that is not a list, and a stream that is not a watch, do not change the store", async () => {
  const html = (res: ServerResponse) => res.setHeader("content-type", "text/html").end("<html>log in</html>\n");
  const { changes, reflector } = await setUp({ lists: [list(10, "x"), html, list(20, "x", "y")], watches: [html, quiet] });
  await eventually(() => expect(reflector.store.size).toBe(2));
  expect(changes).toEqual(["added x", "updated x", "added y"]);
});

test("a slow list in pages enters the store whole or not at all", async () => {
  const paged = (res: ServerResponse, req: IncomingMessage) => {
    const token = new URL(req.url ?? "", "https://api").searchParams.get("continue");
    if (token === null) res.end(JSON.stringify({ metadata: { resourceVersion: "10", continue: "t" }, items: [pod("x", 1)] }));
    else
      res.write('{"metadata":{"resourceVersion":"10"},"items":[', () =>
        setImmediate(() => res.end(`${JSON.stringify(pod("y", 2))}]}`)),
      );
  };
  const truncated = (res: ServerResponse) =>
    res.write('{"metadata":{"resourceVersion":"9"},"items":[', () => setImmediate(() => res.socket?.destroy()));
  const { changes, reflector } = await setUp({ lists: [truncated, truncated, paged], watches: [quiet] });
  await eventually(() => expect(reflector.store.hasSynced).toBe(true));
  expect(changes).toEqual(["added x", "added y"]);
});

test("a stop ends a watch at once and closes its connection", async () => {
  const { api, reflector, requests } = await setUp({ lists: [list(10)], watches: [quiet] });
  await eventually(() => expect(requests()).toContain("watch 10"));
  await reflector.stop();
  await eventually(() => expect(api.open).toBeLessThanOrEqual(1)); // the idle connection of the list
});
