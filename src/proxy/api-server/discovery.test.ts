import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { Call, Handler } from "../call/call.ts";
import { createDiscovery } from "./discovery.ts";

function call(target: string, headers: Call["headers"] = {}): Call {
  const info = parseRequestInfo("GET", target);
  return {
    method: "GET",
    target,
    info,
    headers,
    body: null,
    signal: new AbortController().signal,
    record: { decision: "forwarded", lock: false },
  };
}

const json = (status: number, value: unknown) => ({ status, headers: {}, body: Buffer.from(JSON.stringify(value)) });
const WIDGETS = {
  resources: [
    { name: "widgets", namespaced: true },
    { name: "widgets/status", namespaced: true },
    { name: "planets", namespaced: false },
  ],
};

function setup(send: Handler) {
  const clock = createFakeClock();
  const asked: Call[] = [];
  const ask: Handler = (one) => {
    asked.push(one);
    return send(one);
  };
  const discovery = createDiscovery(ask, clock);
  return { clock, asked, discovery };
}

describe("discovery", () => {
  it("asks once a group version and knows all its resources", async () => {
    const { asked, discovery } = setup(async () => json(200, WIDGETS));
    expect(await discovery.scopeOf(call("/apis/example.io/v1/widgets"))).toBe("namespaced");
    expect(await discovery.scopeOf(call("/apis/example.io/v1/planets"))).toBe("cluster");
    expect(asked.map(({ target }) => target)).toEqual(["/apis/example.io/v1"]);
  });

  it("asks the core group by its own path", async () => {
    const { asked, discovery } = setup(async () => json(200, { resources: [{ name: "pods", namespaced: true }] }));
    expect(await discovery.scopeOf(call("/api/v1/pods"))).toBe("namespaced");
    expect(asked[0]?.target).toBe("/api/v1");
  });

  it("keeps nothing of an answer with more resources than any API has", async () => {
    const many = Array.from({ length: 2_001 }, (_, index) => ({ name: `r${index}`, namespaced: true }));
    const { discovery } = setup(async () => json(200, { resources: [...WIDGETS.resources, ...many] }));
    expect(await discovery.scopeOf(call("/apis/example.io/v1/widgets"))).toBe("unknown");
  });

  it("asks once for callers that ask together", async () => {
    const { asked, discovery } = setup(async () => json(200, WIDGETS));
    const scopes = await Promise.all([1, 2, 3].map(() => discovery.scopeOf(call("/apis/example.io/v1/widgets"))));
    expect([scopes, asked.length]).toEqual([["namespaced", "namespaced", "namespaced"], 1]);
  });

  it.each([401, 403])("keeps one caller's %d from all other callers, also at the same time", async (status) => {
    const { discovery } = setup(async ({ headers }) => json(headers.authorization === "Bearer good" ? 200 : status, WIDGETS));
    const scopeFor = (token: string) =>
      discovery.scopeOf(call("/apis/example.io/v1/widgets", { authorization: `Bearer ${token}` }));
    expect(await Promise.all([scopeFor("bad"), scopeFor("good")])).toEqual(["unknown", "namespaced"]);
    const { discovery: another } = setup(async ({ headers }) =>
      json(headers.authorization === undefined ? status : 200, WIDGETS),
    );
    expect(await another.scopeOf(call("/apis/example.io/v1/widgets"))).toBe("unknown");
    expect(await another.scopeOf(call("/apis/example.io/v1/widgets", { authorization: "Bearer good" }))).toBe("namespaced");
  });

  it("asks as the caller, with nothing of its own", async () => {
    const { asked, discovery } = setup(async () => json(200, WIDGETS));
    await discovery.scopeOf(
      call("/apis/example.io/v1/widgets", { authorization: "Bearer a", "impersonate-user": "u", cookie: "c", accept: "x/y" }),
    );
    expect(asked[0]?.headers).toEqual({ authorization: "Bearer a", "impersonate-user": "u", accept: "application/json" });
  });

  it("finds a CRD that is installed later, after the short time of a miss", async () => {
    let installed = false;
    const { clock, discovery } = setup(async () => (installed ? json(200, WIDGETS) : json(404, {})));
    const scope = () => discovery.scopeOf(call("/apis/example.io/v1/widgets"));
    expect(await scope()).toBe("unknown");
    installed = true;
    expect(await scope()).toBe("unknown");
    await clock.advance(5_001);
    expect(await scope()).toBe("namespaced");
  });

  it("answers unknown after two seconds when an aggregated API hangs, and gives the question up", async () => {
    const { clock, asked, discovery } = setup(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    const pending = discovery.scopeOf(call("/apis/broken.io/v1/things"));
    await clock.advance(2_000);
    expect(await pending).toBe("unknown");
    expect(asked[0]?.signal.aborted).toBe(true);
  });

  it.each([[json(200, "nonsense")], [json(200, { resources: [{ name: 3 }] })], [json(503, WIDGETS)]])(
    "answers unknown to what cannot be read",
    async (reply) => {
      const { discovery } = setup(async () => reply);
      expect(await discovery.scopeOf(call("/apis/example.io/v1/widgets"))).toBe("unknown");
    },
  );

  it("keeps what it knows when a later question fails", async () => {
    let broken = false;
    const { clock, discovery } = setup(async () => (broken ? json(503, {}) : json(200, WIDGETS)));
    const scope = () => discovery.scopeOf(call("/apis/example.io/v1/widgets"));
    await scope();
    broken = true;
    await clock.advance(11 * 60_000);
    expect(await scope()).toBe("namespaced");
  });

  it("asks nothing for what is no resource", async () => {
    const { asked, discovery } = setup(async () => json(200, WIDGETS));
    expect(await discovery.scopeOf(call("/version"))).toBe("unknown");
    expect(asked).toHaveLength(0);
  });
});
