// What /debug/explain says of a request is what the layers then do with it, for random routes, policies and requests. Each request goes through
// the shipping stack, with an API server that answers everything.
import fc from "fast-check";
import { expect, it } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import { clusterPlace } from "../../src/kube/place.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { FaultRule, LimiterSpec, LimitRule } from "../../src/policy/policy.ts";
import { createServerFeatures } from "../../src/proxy/api-server/discovery.ts";
import { type CallRecord, createRecord, type RawCall } from "../../src/proxy/call/call.ts";
import { readAskedRequest } from "../../src/proxy/explain/asked-request.ts";
import { explainRequest } from "../../src/proxy/explain/explain-request.ts";
import { createStreamMetrics } from "../../src/proxy/filter/stream-metrics.ts";
import { composeStack } from "../../src/proxy/http/compose-stack.ts";
import type { Reply } from "../../src/proxy/http/handler.ts";
import { createAccessLog } from "../../src/proxy/observe/access-log.ts";
import { createProxyMetrics } from "../../src/proxy/observe/metrics.ts";
import { createLockGate } from "../../src/proxy/outbound/election/lock-gate.ts";
import { createPlanLog } from "../../src/proxy/outbound/lists/plan-log.ts";
import { outboundLayers } from "../../src/proxy/outbound/stack.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { NO_MEMORY } from "../../src/proxy/session/memory.ts";
import { FUZZ_SEED } from "../support/fuzz.ts";
import { upgraded } from "../support/layer-call.ts";
import { limitRule, resourceRule } from "../support/policies.ts";
import { group, limit, objects, retained, snapshot, subset, table } from "../support/route-table.ts";
import { runningPolicies } from "../support/running-policies.ts";

const RUNS = Number(process.env.RUNS ?? 2_000);
const NAMESPACES = ["a", "b", "shop"];
/** With the cluster scope, and the buckets of some cluster-scoped names. */
const PLACES = ["", ...NAMESPACES];
const BUCKETS = ["a", "web"].map(clusterPlace);
const RULES = [
  subset("blue"),
  subset("blue", group("apps")),
  limit(group("batch")),
  objects("green", "color in (green)", group("", "configmaps")),
];

const places = fc.uniqueArray(fc.constantFrom(...NAMESPACES), { maxLength: 1 });
const members = fc.record(
  Object.fromEntries(
    [...PLACES, ...BUCKETS].map((place) => [
      place,
      fc.uniqueArray(fc.nat(RULES.length - 1)).map((list) => list.sort((x, y) => x - y)),
    ]),
  ),
);
const routes: fc.Arbitrary<Snapshot> = fc
  .record({
    members,
    fenced: places,
    kept: places,
    lockName: fc.constantFrom("", "shop-lock"),
    subset: fc.constantFrom("", "blue", "green"),
    guard: fc.constantFrom(undefined, undefined, "Warn" as const),
    frozen: places.map((names) =>
      names.length === 0 ? undefined : names.map((namespace) => ({ namespace, reason: "restore" })),
    ),
    agents: fc.constantFrom([], ["debug*"]),
  })
  .map(({ members: of, fenced, kept, agents, ...more }) => {
    const all = table(RULES, of, { fenced, retained: kept.length === 0 ? [] : [retained(kept)] });
    const callers = { userAgent: "", defaultOnlyUserAgents: agents, stripManagedFields: false };
    return snapshot(all, { ...more, callers });
  });

const modes = fc.constantFrom("Enforce" as const, "Enforce" as const, "Shadow" as const);
const matches = fc.record({
  apiGroups: fc.constantFrom(["*"], ["*"], ["apps"]),
  resources: fc.constantFrom(["*"], ["*"], ["pods/eviction"], ["namespaces"], ["leases", "nodes"]),
  clusterScope: fc.boolean(),
  verbs: fc.constantFrom(["*"], ["delete"], ["list", "watch"]),
  namespaces: fc.constantFrom(["*"], ["a"]),
});
const limits: fc.Arbitrary<LimitRule[]> = fc.array(
  fc
    .record({
      match: matches,
      mode: modes,
      limiter: fc.constantFrom<LimiterSpec>(
        { kind: "deny" },
        { kind: "exempt" },
        { kind: "in-flight", max: 9 },
        { kind: "in-flight", max: 0 },
        { kind: "bucket", perSecond: 0, burst: 1 },
        { kind: "bucket", perSecond: 1, burst: 0 },
        { kind: "bucket", perSecond: 1, burst: 0, per: "Object" },
        { kind: "backoff", baseMs: 1_000, maxMs: 10_000, failures: 1 },
        { kind: "breaker", bucket: { perSecond: 0, burst: 0 }, trigger: { consecutive: 1, minimumRequests: 1, windowMs: 1_000 } },
      ),
      name: fc.constantFrom("one", "two", "three"),
      except: fc.constantFrom(undefined, [{ users: ["system:admin"] }], [{ namespaces: ["a"] }], [{ names: ["web"] }]),
      urls: fc.constantFrom([], [{ url: "/healthz", methods: ["*"] }]),
    })
    .map(({ match, mode, limiter, name, except, urls }) =>
      limitRule(limiter, {
        mode,
        name,
        match: { resources: [resourceRule({ ...match, ...(except && { except }) })], urls, http: [] },
      }),
    ),
  { maxLength: 3 },
);
const faults: fc.Arbitrary<FaultRule[]> = fc.array(
  fc.record({ match: matches, mode: modes, status: fc.constantFrom(418, 503) }).map(({ match, mode, status }) => ({
    ...limitRule({ kind: "deny" }, { name: "fault" }),
    origin: { kind: "FaultInjection", namespace: "shop", name: "faults", uid: "uid-2", rule: "fault" } as const,
    mode,
    match: { resources: [resourceRule(match)], urls: [], http: [] },
    abort: { percent: 100, status },
  })) as unknown as fc.Arbitrary<FaultRule>,
  { maxLength: 1 },
);

const CLUSTER_RESOURCES = ["namespaces", "nodes", "clusterroles"];
const RESOURCES = [
  { group: "", resource: "configmaps" },
  { group: "", resource: "pods" },
  { group: "", resource: "events" },
  { group: "", resource: "namespaces" },
  { group: "", resource: "nodes" },
  { group: "apps", resource: "deployments" },
  { group: "batch", resource: "jobs" },
  { group: "coordination.k8s.io", resource: "leases" },
  { group: "coordination.k8s.io", resource: "leasecandidates" },
  { group: "authorization.k8s.io", resource: "subjectaccessreviews" },
  { group: "rbac.authorization.k8s.io", resource: "clusterroles" },
];
const scopeOf = (resource: string) => (CLUSTER_RESOURCES.includes(resource) ? "cluster" : "namespaced");
const anyRequests = fc.record({
  verb: fc.constantFrom("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
  of: fc.constantFrom(...RESOURCES),
  namespace: fc.constantFrom(...PLACES),
  name: fc.constantFrom("web", "a", "b", "shop-lock", "shop-lock---blue", "50%_+ ~"),
  subresource: fc.constantFrom("", "", "", "status", "eviction", "log", "proxy/a"),
  userAgent: fc.constantFrom("operator", "debugger/1"),
  user: fc.constantFrom("", "system:admin"),
  path: fc.option(fc.constantFrom("/healthz", "/version", "/", "/apis/apps/v1", "/openapi/v3?hash=1"), {
    nil: undefined,
    freq: 9,
  }),
});
/**
 * The owner of a namespace that is in no table is waited for, on a clock that stands here. Behind the name of a Namespace,
 * other words than `status` are resources.
 */
const requests = anyRequests.map((asked) => {
  if (asked.of.resource !== "namespaces") return asked;
  const { namespace, subresource } = asked;
  return { ...asked, name: namespace === "" ? "a" : namespace, subresource: subresource === "" ? "" : "status" };
});
type Asked = typeof requests extends fc.Arbitrary<infer T> ? T : never;

const isCollection = ({ verb }: Pick<Asked, "verb">) => ["list", "watch", "deletecollection"].includes(verb);
const paramsOf = ({ verb, of, namespace, name, subresource, userAgent, user, path }: Asked) => {
  const isAll = isCollection({ verb });
  const scope = scopeOf(of.resource);
  const place = scope === "cluster" ? "" : namespace;
  return new URLSearchParams({
    ...(path === undefined ? of : { path }),
    ...{ verb, namespace: place, name: isAll ? "" : name, subresource: isAll ? "" : subresource, scope, userAgent, user },
  });
};

function json(value: unknown): Reply {
  return { status: 200, headers: { "content-type": "application/json" }, body: Buffer.from(JSON.stringify(value)) };
}

interface Rules {
  readonly limits: readonly LimitRule[];
  readonly faults: readonly FaultRule[];
}

/** @param isClosed the lock has another name since a moment ago, so writes of a leader are held back */
function world(routesNow: Snapshot, rules: Rules, isClosed: boolean) {
  const { policies, clock, registry } = runningPolicies(rules);
  const enforcer = createEnforcer();
  const session = Object.assign(enforcer, { report: () => undefined, memory: NO_MEMORY });
  const metrics = createProxyMetrics(createRegistry("proxy", "test"));
  metrics.stop();
  const [log, random] = [silentLogger(), () => 0];
  const gate = { ...createLockGate(clock, NO_MEMORY.lock), closedFor: isClosed ? "shop-lock---blue" : undefined };
  const send = async (call: RawCall): Promise<Reply> => {
    const { info } = call as unknown as { info: { verb: string; namespace: string; name: string; resource: string } };
    if (info.verb === "watch") return { ...json({}), body: Buffer.from("") };
    if (info.verb === "list" || info.verb === "deletecollection")
      return json({ kind: "List", apiVersion: "v1", metadata: { resourceVersion: "7" }, items: [] });
    return json({
      kind: "Thing",
      apiVersion: "v1",
      metadata: { name: info.name, namespace: info.namespace, resourceVersion: "7" },
    });
  };
  const layers = outboundLayers({
    session,
    policies,
    apiServer: {
      send: send as never,
      upgrade: upgraded,
      discovery: {
        scopeOf: async ({ info }: { readonly info: { readonly resource: string } }) => scopeOf(info.resource),
      } as never,
      features: createServerFeatures(clock),
    },
    metrics,
    streamMetrics: createStreamMetrics(registry),
    plans: createPlanLog(clock),
    accessLog: createAccessLog({ share: 0, random, log }),
    gate,
    clock,
    random,
    log,
    podName: "app-0",
  });
  const stack = composeStack(layers, clock) as unknown as (call: RawCall) => Promise<Reply>;
  enforcer.enforce(routesNow);
  return {
    stack,
    explain: (query: URLSearchParams) => explainRequest(readAskedRequest(query), { session, policies, gate, random }),
  };
}

/** What the layers note of the request, and the status that the client gets. */
async function sent(stack: (call: RawCall) => Promise<Reply>, request: string, asked: Asked) {
  const { verb, of, name, namespace, userAgent, user } = asked;
  const [method = "", target = ""] = request.split(" ");
  const hasBody = ["create", "update", "patch"].includes(verb);
  const body = hasBody ? Buffer.from(JSON.stringify({ kind: "Thing", apiVersion: "v1", metadata: { name, namespace } })) : null;
  const type = verb === "patch" ? "application/merge-patch+json" : "application/json";
  const record: CallRecord = createRecord();
  const reply = await stack({
    method,
    target,
    headers: {
      "user-agent": userAgent,
      accept: "application/json",
      ...(user !== "" && { "impersonate-user": user }),
      ...(hasBody && { "content-type": type }),
    },
    body,
    signal: new AbortController().signal,
    record,
  } as RawCall);
  return { record, status: reply.status, of };
}

it(`says what the layers then do (SEED=${FUZZ_SEED})`, { timeout: 120_000 }, async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(routes, limits, faults, fc.nat(4), requests, async (routesNow, someLimits, someFaults, closed, asked) => {
      const { stack, explain } = world(routesNow, { limits: someLimits, faults: someFaults }, closed === 0);
      const { request, decision, reason, rule, code } = explain(paramsOf(asked));
      seen.set(decision, (seen.get(decision) ?? 0) + 1);
      const { record, status } = await sent(stack, request, asked);
      if (decision === "depends") return;
      expect({ decision: record.decision, reason: record.reason, rule: record.rule }).toEqual({ decision, reason, rule });
      if (code !== undefined && asked.verb !== "watch") expect(status).toBe(code);
    }),
    { seed: FUZZ_SEED, numRuns: RUNS, timeout: 10_000 },
  );
  for (const decision of ["forwarded", "narrowed", "refused", "warned", "fenced"])
    expect(seen.get(decision) ?? 0).toBeGreaterThan(5);
  expect(seen.get("depends") ?? 0).toBeLessThan(RUNS / 4);
});
