// Attacks on a freeze through the whole layer. The app has no rules, so its only subset owns everything.
import { expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply } from "../../../../test/support/layer-call.ts";
import { snapshot, table } from "../../../../test/support/route-table.ts";
import { StatusError } from "../../../kube/status.ts";
import type { ResourceScope } from "../../../mesh/ownership/plan-query.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "./isolate.ts";

const NAMESPACES = "/api/v1/namespaces";
const PROJECTS = "/apis/project.openshift.io/v1/projectrequests";

function setup(reason: string | undefined = "restore", scope: ResourceScope = "cluster") {
  const session = createEnforcer();
  let version = 1;
  const enforce = (why: string | undefined) => {
    const frozen = why === undefined ? undefined : [{ namespace: "prod", reason: why }];
    session.enforce(snapshot(table([], {}), { version, digest: `d${version++}`, frozen }));
  };
  enforce(reason);
  let answer = (): Reply | Promise<Reply> => jsonReply({});
  const upstream = fakeUpstream(() => answer());
  const clock = createFakeClock();
  const handler = isolate(isolateDeps({ session, clock, discovery: { scopeOf: async () => scope } }))(upstream);
  const send = (method: string, target: string, body?: object, type = "application/json") =>
    handler(callOf(method, target, body && { headers: { "content-type": type }, body: JSON.stringify(body) }));
  const outcome = (...call: Parameters<typeof send>) =>
    send(...call).then(
      ({ status }) => status,
      (error: unknown) => (error instanceof StatusError ? error.status.message : String(error)),
    );
  return { session, enforce, upstream, send, outcome, answerWith: (next: typeof answer) => (answer = next) };
}
const named = (name: string) => ({ metadata: { name } });

it("a frozen namespace that was deleted is not created again", async () => {
  const { outcome, upstream } = setup();
  expect(await outcome("POST", NAMESPACES, named("prod"))).toContain(
    'create namespaces "prod": namespace "prod" is frozen: restore',
  );
  expect(await outcome("POST", PROJECTS, named("prod"))).toContain("is frozen");
  expect(await outcome("POST", NAMESPACES, named("prod"), "application/yaml")).toContain("cannot be read");
  expect(upstream.calls).toEqual([]);
});

it("while a namespace is frozen, others are created as before, also with a generated name", async () => {
  const { outcome, upstream } = setup();
  expect(await outcome("POST", NAMESPACES, named("new"))).toBe(200);
  expect(await outcome("POST", NAMESPACES, { metadata: { generateName: "prod" } })).toBe(200);
  expect(upstream.calls[0]?.target).toBe(NAMESPACES);
});

it("a freeze waits for a create of a namespace that is under way", async () => {
  const { send, enforce, session, answerWith } = setup(undefined);
  enforce(undefined);
  const { promise, resolve } = Promise.withResolvers<Reply>();
  answerWith(() => promise);
  const sent = send("POST", NAMESPACES, named("prod"));
  await Promise.resolve();
  enforce("restore");
  let isDrained = false;
  session.whenDrained(() => {
    isDrained = true;
  });
  expect(isDrained).toBe(false);
  resolve(jsonReply({}));
  await sent;
  expect(isDrained).toBe(true);
});

it("a deletecollection of a cluster-scoped resource passes, since it reaches no namespace", async () => {
  const target = "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=app%3Dx";
  expect(await setup().outcome("DELETE", target)).toBe(200);
  expect(await setup("restore", "unknown").outcome("DELETE", target)).toContain("is frozen");
  expect(await setup("restore", "namespaced").outcome("DELETE", "/api/v1/pods")).toContain("is frozen");
});

it("a reason can neither drive a terminal nor begin a line", async () => {
  const { outcome } = setup("a\u001b[31mb\nc\u202ed");
  expect(await outcome("PUT", `${NAMESPACES}/prod/pods/x`, named("x"))).toContain("is frozen: a [31mb c d; to end that");
});
