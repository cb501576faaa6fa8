import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { RawRequest, WatchEvent } from "../../kube/client/types.ts";
import { isStatus, StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createRemoteNamespaces, isRefusal, MAX_NAMESPACES } from "./remote-namespaces.ts";

const RESOURCE = metadataOnly(NAMESPACES);
const page = (names: readonly unknown[], next = "") => ({
  metadata: { resourceVersion: "5", continue: next },
  items: names.map((name) => ({ metadata: { name, resourceVersion: "4", labels: {} } })),
});

function setup(answer: (request: RawRequest, at: number) => unknown, events: readonly unknown[] = []) {
  const clock = createFakeClock();
  const heard: (MeshError | undefined)[] = [];
  let requests = 0;
  const remote = createRemoteNamespaces({
    clock,
    heard: (error) => heard.push(error),
    client: () => ({
      request: async (request) => answer(request, requests++),
      async *watch() {
        for (const event of events) {
          if (event instanceof Error) throw event;
          yield event as WatchEvent<never>;
        }
      },
    }),
  });
  const namesListed = async () => (await remote.list(RESOURCE)).items.map(({ metadata }) => metadata.name);
  return { remote, clock, heard, namesListed, requests: () => requests };
}
const eventsOf = async (events: AsyncIterable<unknown>) => {
  for await (const _ of events);
};
const failureOf = (run: Promise<unknown>) =>
  run.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("the namespaces of a tenant's cluster", () => {
  it("are listed page by page, with the version of the first page", async () => {
    const { remote, heard } = setup(({ path }) => (path.includes("continue=more") ? page(["b"]) : page(["a"], "more")));
    const { items, metadata } = await remote.list(RESOURCE);
    expect([items.map((each) => each.metadata.name), metadata.resourceVersion]).toEqual([["a", "b"], "5"]);
    expect(heard).toEqual([undefined]);
  });

  it("have only what rules need, so that a hostile object costs little", async () => {
    const labels = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`l-${at}`, "v"]));
    const metadata = { name: "a", resourceVersion: "4", uid: "u", annotations: { big: "x" }, managedFields: [{}] };
    const odd = { ...metadata, labels: { ...labels, long: "x".repeat(64), number: 5 } };
    const { remote } = setup(() => ({ ...page([]), items: [{ metadata: odd, spec: {}, status: {} }] }));
    const [object] = (await remote.list(RESOURCE)).items as readonly KubeObject[];
    expect(Object.keys(object?.metadata ?? {}).sort()).toEqual(["labels", "name", "resourceVersion", "uid"]);
    expect(Object.keys(object?.metadata.labels ?? {})).toHaveLength(256);
    expect(JSON.stringify(object)).not.toMatch(/big|managedFields|xxx|number/);
  });

  it("are left out if their names are those of other places, or none", async () => {
    const { namesListed } = setup(() => page(["a", "", "~3", "A", "a/b", "x".repeat(64), 5, null, "__proto__"]));
    expect(await namesListed()).toEqual(["a"]);
  });

  it.each<[string, unknown]>([
    ["no list", "text"],
    ["no items", {}],
    ["items that are none", { items: 5 }],
    ["an endless token", { items: [], metadata: { continue: "x".repeat(5_000) } }],
  ])("are not known if the answer is %s", async (_, answer) => {
    expect(await failureOf(setup(() => answer).namesListed())).toMatchObject({ code: "KUBE_MALFORMED" });
  });
});

describe("a server that never ends", () => {
  it.each([
    ["its list with full pages", 125],
    ["its list with empty pages", 0],
  ])("%s is given up", async (_, size) => {
    const { namesListed, requests } = setup((_request, at) =>
      page(
        Array.from({ length: size }, (_, n) => `n-${at}-${n}`),
        "more",
      ),
    );
    expect(await failureOf(namesListed())).toMatchObject({ code: "TOO_MANY_NAMESPACES" });
    expect(requests()).toBeLessThanOrEqual((2 * MAX_NAMESPACES) / 125);
  });

  it("refusing watches is listed at most each five seconds", async () => {
    const { remote, clock, requests } = setup(() => page(["a"]));
    for (let round = 0; round < 10; round++) void remote.list(RESOURCE);
    await clock.advance(20_000);
    expect(requests()).toBe(5);
  });

  it("sending events is read at a thousand a second", async () => {
    const event = { type: "MODIFIED", object: { metadata: { name: "a", resourceVersion: "6" } } };
    const { remote, clock } = setup(() => page([]), Array<unknown>(5_000).fill(event));
    let read = 0;
    void (async () => {
      for await (const _ of remote.watch(RESOURCE)) read++;
    })();
    await clock.advance(2_500);
    expect(read).toBeLessThan(3_100);
    expect(read).toBeGreaterThan(1_900);
  });
});

describe("an error", () => {
  const BODY = "echo of a-secret-token";
  it.each<[string, unknown, string]>([
    ["a refusal", Object.assign(new StatusError("Forbidden", BODY), {}), "HTTP 403"],
    ["an error page", new StatusError("InternalError", BODY), "HTTP 500"],
    [
      "a malformed answer",
      new MeshError("KUBE_MALFORMED", "x", { cause: new SyntaxError(BODY) }),
      "the answer is not a list of namespaces",
    ],
    [
      "a broken connection",
      new MeshError("KUBE_UNREACHABLE", "x", { cause: Object.assign(new Error(BODY), { code: "ECONNREFUSED" }) }),
      "no connection (ECONNREFUSED)",
    ],
    [
      "a certificate of another name",
      new MeshError("KUBE_UNREACHABLE", "x", { cause: Object.assign(new Error(BODY), { code: "ERR_TLS_CERT_ALTNAME_INVALID" }) }),
      "no connection (ERR_TLS_CERT_ALTNAME_INVALID)",
    ],
    [
      "a code that is text",
      new MeshError("KUBE_UNREACHABLE", "x", { cause: Object.assign(new Error(), { code: BODY }) }),
      "no connection",
    ],
    ["anything", BODY, "no connection"],
  ])("by %s has no words of the server", async (_, thrown, words) => {
    const list = setup(() => {
      throw thrown;
    });
    const error = await failureOf(list.namesListed());
    expect(errorMessage(error)).toBe(words);
    expect(list.heard).toEqual([error]);
    const watch = setup(() => page([]), [thrown instanceof Error ? thrown : new Error(BODY)]);
    const ended = await failureOf(eventsOf(watch.remote.watch(RESOURCE)));
    expect(errorMessage(ended)).not.toContain(BODY);
  });

  it("keeps what the reflector goes by: that a version has expired, and how long to wait", async () => {
    const expired = await failureOf(eventsOf(setup(() => page([]), [new StatusError("Expired", BODY)]).remote.watch(RESOURCE)));
    expect(isStatus(expired, "Expired", "Gone")).toBe(true);
    const slow = new StatusError("TooManyRequests", BODY, { retryAfterSeconds: 1e9, name: BODY });
    const asked = await failureOf(
      setup(() => {
        throw slow;
      }).namesListed(),
    );
    expect((asked as StatusError).status.details).toEqual({ retryAfterSeconds: 60 });
  });

  it("is a refusal if the credentials are not valid, or may not do it", () => {
    expect(
      ["Unauthorized", "Forbidden", "NotFound"].map((reason) => isRefusal(new StatusError(reason as "Forbidden", ""))),
    ).toEqual([true, true, false]);
  });
});
