// What /debug/explain says of a request is what the layers then do with it, for random routes, policies and requests. Each request goes through
// the shipping stack, with an API server that answers everything.
import fc from "fast-check";
import { expect, it } from "vitest";
import { silentLogger } from "../../src/base/log.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { FaultRule, LimitRule } from "../../src/policy/policy.ts";
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
import { limitRule, resourceRule } from "../support/policies.ts";
import { group, limit, objects, retained, snapshot, subset, table } from "../support/route-table.ts";
import { runningPolicies } from "../support/running-policies.ts";

const RUNS = Number(process.env.RUNS ?? 1_000);
const NAMESPACES = ["a", "b", "shop"];
/** The cluster scope. */
const PLACES = ["", ...NAMESPACES];
const RULES = [
  subset("blue"),
  subset("blue", group("apps")),
  limit(group("batch")),
  objects("green", "color in (green)", group("", "configmaps")),
];

const places = fc.uniqueArray(fc.constantFrom(...NAMESPACES), { maxLength: 1 });
const members = fc.record(
  Object.fromEntries(
    PLACES.map((place) => [place, fc.uniqueArray(fc.nat(RULES.length - 1)).map((list) => list.sort((x, y) => x - y))]),
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
    agents: fc.constantFrom([], ["debug*"]),
  })
  .map(({ members: of, fenced, kept, agents, ...more }) => {
    const all = table(RULES, of, { fenced, retained: kept.length === 0 ? [] : [retained(kept)] });
    const callers = { userAgent: "", defaultOnlyUserAgents: agents, stripManagedFields: false };
    return snapshot(all, { ...more, callers });
  });

const modes = fc.constantFrom("Enforce" as const, "Enforce" as const, "Shadow" as const);
const matches = fc.record({
  apiGroups: fc.constantFrom(["*"], ["apps"]),
  verbs: fc.constantFrom(["*"], ["delete"], ["list", "watch"]),
  namespaces: fc.constantFrom(["*"], ["a"]),
});
const limits: fc.Arbitrary<LimitRule[]> = fc.array(
  fc
    .record({
      match: matches,
      mode: modes,
      limiter: fc.constantFrom({ kind: "deny" as const }, { kind: "in-flight" as const, max: 9 }),
    })
    .map(({ match, mode, limiter }) =>
      limitRule(limiter, { mode, match: { resources: [resourceRule(match)], urls: [], http: [] } }),
    ),
  { maxLength: 1 },
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

const RESOURCES = [
  { group: "", resource: "configmaps" },
  { group: "", resource: "pods" },
  { group: "", resource: "events" },
  { group: "apps", resource: "deployments" },
  { group: "batch", resource: "jobs" },
  { group: "coordination.k8s.io", resource: "leases" },
  { group: "coordination.k8s.io", resource: "leasecandidates" },
  { group: "authorization.k8s.io", resource: "subjectaccessreviews" },
];
const requests = fc.record({
  verb: fc.constantFrom("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
  of: fc.constantFrom(...RESOURCES),
  namespace: fc.constantFrom(...PLACES),
  name: fc.constantFrom("web", "shop-lock", "shop-lock---blue"),
  userAgent: fc.constantFrom("operator", "debugger/1"),
});
type Asked = typeof requests extends fc.Arbitrary<infer T> ? T : never;

const isCollection = ({ verb }: Asked) => ["list", "watch", "deletecollection"].includes(verb);
const paramsOf = (asked: Asked) =>
  new URLSearchParams({
    verb: asked.verb,
    ...asked.of,
    namespace: asked.namespace,
    name: isCollection(asked) ? "" : asked.name,
    scope: "namespaced",
    userAgent: asked.userAgent,
  });

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
    apiServer: { send: send as never, discovery: { scopeOf: async () => "namespaced" }, features: createServerFeatures(clock) },
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
async function sent(stack: (call: RawCall) => Promise<Reply>, request: string, { verb, of, name, namespace, userAgent }: Asked) {
  const [method = "", target = ""] = request.split(" ");
  const hasBody = ["create", "update", "patch"].includes(verb);
  const body = hasBody ? Buffer.from(JSON.stringify({ kind: "Thing", apiVersion: "v1", metadata: { name, namespace } })) : null;
  const type = verb === "patch" ? "application/merge-patch+json" : "application/json";
  const record: CallRecord = createRecord();
  const reply = await stack({
    method,
    target,
    headers: { "user-agent": userAgent, accept: "application/json", ...(hasBody && { "content-type": type }) },
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
    { seed: FUZZ_SEED, numRuns: RUNS },
  );
  for (const decision of ["forwarded", "narrowed", "refused", "warned", "fenced"])
    expect(seen.get(decision) ?? 0).toBeGreaterThan(5);
  expect(seen.get("depends") ?? 0).toBeLessThan(RUNS / 4);
});
