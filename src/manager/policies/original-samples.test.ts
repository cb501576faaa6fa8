// The shapes of the samples that KusionStack's controller mesh publishes: its breaker applies unchanged and means what it
// says, and its older shapes are refused with what to write instead.
import { expect, it } from "vitest";
import { parse } from "yaml";
import { egressRequest, policyRequest } from "../../../test/support/policies.ts";
import { policyProblemsOf } from "../../../test/support/traffic-objects.ts";
import { createEgressRules } from "../../policy/egress-rules.ts";
import { createMatcher } from "../../policy/matcher.ts";
import { circuitBreakers } from "./circuit-breakers.ts";

const GROUP = "ctrlmesh.kusionstack.io";

const BREAKER = parse(`
apiVersion: ${GROUP}/v1alpha1
kind: CircuitBreaker
metadata: { name: breaker-demo, namespace: ops, uid: uid-1, generation: 1 }
spec:
  selector: { matchLabels: { control-plane: operating } }
  rateLimitings:
    - name: deletePod
      bucket: { burst: 500, interval: 1s, limit: 20 }
      resourceRules: [{ apiGroups: [""], namespaces: ["*"], resources: [pods], verbs: [delete] }]
      recoverPolicy: { type: SleepingWindow, sleepingWindowSize: 10m }
      triggerPolicy: LimiterOnly
    - name: trafficOffLimit
      bucket: { burst: 200, interval: 1s, limit: 20 }
      restRules: [{ method: POST, url: https://example.com/ops/trafficOff }]
      triggerPolicy: LimiterOnly
  trafficInterceptRules:
    - name: internalOnly
      contentType: Regexp
      contents: [".*(127.0.0.1).*"]
      interceptType: Whitelist
      methods: [POST, GET, PUT]
`);

const OLDER_BREAKER = parse(`
apiVersion: ${GROUP}/v1alpha1
kind: CircuitBreaker
metadata: { name: older, namespace: ops }
spec:
  selector: { matchLabels: { app: shop } }
  rateLimitings:
    - name: deletePod
      bucket: { burst: 3, interval: 10m, limit: 100 }
      resourceRules: [{ apiGroups: [""], namespaces: ["*"], resources: [pods], verbs: [delete] }]
      triggerPolicy: Normal
      recoverPolicy: SleepingWindow
      properties: { sleepingWindowSize: 10m }
  trafficInterceptRules:
    - { name: inside, interceptType: White, contentType: Normal, contents: [example.com], methods: [POST, GET] }
`);

const OLDER_FAULT = parse(`
apiVersion: ${GROUP}/v1alpha1
kind: FaultInjection
metadata: { name: older, namespace: ops }
spec:
  selector: { matchLabels: { app: shop } }
  httpFault:
    - delay: { fixedDelay: 5s, percent: 10 }
      match: [{ method: POST, url: "https://*.com/*/trafficOff" }]
    - abort: { httpStatus: 500, percent: 100 }
      match:
        relatedResources: [{ apiGroups: [""], namespaces: ["*"], resources: [pods], verbs: [delete] }]
`);

it("the breaker of the demo limits deletes and one URL, and allows the loopback alone", () => {
  expect(policyProblemsOf("CircuitBreaker", BREAKER)).toEqual([]);
  const compiled = circuitBreakers.compile(BREAKER);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  const { limits, egress } = compiled.value.rules;
  expect(limits.map(({ limiter }) => limiter)).toEqual([
    { kind: "bucket", perSecond: 20, burst: 500 },
    { kind: "bucket", perSecond: 20, burst: 200 },
  ]);
  const { match } = createMatcher(limits);
  const matching = (request: Parameters<typeof match>[0]) => match(request).map(({ origin }) => origin.rule);
  expect(matching(policyRequest("DELETE /api/v1/namespaces/a/pods/p"))).toEqual(["deletePod"]);
  expect(matching(policyRequest("GET /api/v1/namespaces/a/pods/p"))).toEqual([]);
  expect(matching(egressRequest("POST https://example.com/ops/trafficOff?pod=p"))).toEqual(["trafficOffLimit"]);
  const { judge } = createEgressRules(egress);
  expect(judge(egressRequest("POST http://127.0.0.1:8080/x")).refusedBy).toBeUndefined();
  expect(judge(egressRequest("POST http://a.example/x")).refusedBy?.origin.rule).toBe("internalOnly");
});

it("the breaker of the demo says which of its rules see no tunnel", () => {
  const compiled = circuitBreakers.compile(BREAKER);
  const notes = compiled.ok ? compiled.value.notes.join("\n") : "";
  expect(notes).toContain("spec.rateLimitings[1].restRules[0] does not match the tunnels");
  expect(notes).toContain("spec.trafficInterceptRules[0] does not match the tunnels");
});

it("a breaker in the shape of the website is refused with the new fields", () => {
  expect(policyProblemsOf("CircuitBreaker", OLDER_BREAKER)).toEqual([
    'spec.rateLimitings[0].recoverPolicy: "SleepingWindow": must be an object; did you mean {type: SleepingWindow, sleepingWindowSize: 10m}?',
    'spec.trafficInterceptRules[0].interceptType: "White": must be one of "Whitelist", "Blacklist"; did you mean "Whitelist"?',
    'spec.rateLimitings[0].properties.sleepingWindowSize: "10m": has no effect; did you mean "recoverPolicy.sleepingWindowSize"?',
  ]);
});

it("a fault injection in the shape of the demo is refused with the new fields", () => {
  expect(policyProblemsOf("FaultInjection", OLDER_FAULT)).toEqual([
    'spec.httpFault[0].delay.percent: 10: must be a string from "0" to "100", in quotes',
    "spec.httpFault[0].match: must be an object, not a list",
    'spec.httpFault[1].abort.percent: 100: must be a string from "0" to "100", in quotes',
    'spec.httpFault[1].match.relatedResources: unknown field; did you mean "resources"?',
  ]);
});
