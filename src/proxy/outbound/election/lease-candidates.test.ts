import { describe, expect, it } from "vitest";
import { jsonBody, setupElection } from "../../../../test/support/election-setup.ts";

const CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/shop/leasecandidates";
const candidate = jsonBody({ metadata: { name: "pod-1" }, spec: { leaseName: "shop-lock" } });

describe("a LeaseCandidate", () => {
  it.each([
    ["POST", CANDIDATES],
    ["PUT", `${CANDIDATES}/pod-1`],
    ["PATCH", `${CANDIDATES}/pod-1`],
  ])("is refused by %s where the lock is renamed: it would stand for the default subset's lock", async (method, path) => {
    const { refusal } = setupElection();
    const status = await refusal(method, path, candidate);
    expect(status).toMatchObject({ code: 403, message: expect.stringContaining('whose lock is "shop-lock---blue" upstream') });
  });

  it.each([
    ["reads", "GET", `${CANDIDATES}/pod-1`, {}],
    ["deletions", "DELETE", `${CANDIDATES}/pod-1`, {}],
    ["candidates of other namespaces", "POST", CANDIDATES.replace("shop", "other"), {}],
    ["the default subset", "POST", CANDIDATES, { subset: "" }],
    ["an app without a lock", "POST", CANDIDATES, { lockName: "" }],
  ])("passes otherwise: %s", async (_, method, path, snapshot) => {
    const { send } = setupElection(snapshot);
    expect((await send(method, path, candidate)).status).toBe(200);
  });
});
