// The listener for the operator's webhooks and callers that are no peers, or not the peers that they seem to be.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../../src/base/certificates.ts";
import { podUri } from "../../../src/base/pem.ts";
import type { PodPeer } from "../../../src/mesh/contract/peer-type.ts";
import { type ReviewPod, type ReviewWorld, reviewOf, startReviewWorld } from "../../support/review-world.ts";
import { subset, table } from "../../support/route-table.ts";

let world: ReviewWorld;
let stable: ReviewPod;
let canary: ReviewPod;
beforeAll(async () => {
  world = await startReviewWorld();
  stable = await world.addPod("stable", "");
  canary = await world.addPod("canary", "canary");
});
afterAll(() => world?.stop());
beforeEach(() => {
  world.tell();
  for (const pod of [stable, canary]) {
    pod.enforce(table([subset("canary")], { prod: [], pilot: [0] }));
    pod.answered.length = 0;
  }
});

const by = (name: string) => ({ status: 200, body: expect.stringContaining(`"by":"${name}"`) });
const refused = (status: number, code: string) => ({ status, headers: { "x-ctrlmesh-error": code } });
const CONVERSION = { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request: { uid: "c" } };
const peerTls = (pair: KeyCertificate | undefined, ca: string) => ({
  servername: "peer.ctrlmesh",
  ca,
  ...(pair === undefined ? {} : { cert: pair.certPem, key: pair.keyPem }),
});
const OWNER = { "x-ctrlmesh-review-forwarded": "owner" };

describe("strangers", () => {
  const leaf = (ca: KeyCertificate, peer: PodPeer) =>
    issueServerCertificate(ca, { dnsNames: ["localhost"], clientName: podUri(peer), now: Date.now() });

  it.each<[string, () => KeyCertificate | undefined]>([
    ["without a certificate", () => undefined],
    ["with a certificate of another CA", () => leaf(createCa({ commonName: "mesh", now: Date.now() }), stable.peer)],
    ["with the certificate of a pod of another app", () => leaf(world.mesh, { ...stable.peer, namespace: "other" })],
    ["with the certificate of an earlier pod of a peer's name", () => leaf(world.mesh, { ...stable.peer, uid: "earlier" })],
    [
      "with a certificate that is for servers only",
      () => issueServerCertificate(world.mesh, { dnsNames: ["x"], now: Date.now() }),
    ],
  ])("%s cannot forward", async (_, pair) => {
    const options = { headers: OWNER, tls: peerTls(pair(), world.mesh.certPem) };
    const answer = await world
      .call(canary, reviewOf("prod"), { ...options, tls: { ...options.tls, checkServerIdentity: () => undefined } })
      .catch((error: Error) => error);
    if (answer instanceof Error) throw answer;
    expect(answer).toMatchObject(refused(403, "PEER_UNKNOWN"));
    expect([stable.answered, canary.answered]).toEqual([[], []]);
  });

  it("a peer may forward reviews and nothing else", async () => {
    const tls = { ...peerTls(leaf(world.mesh, stable.peer), world.mesh.certPem), checkServerIdentity: () => undefined };
    expect(await world.call(canary, reviewOf("pilot"), { headers: OWNER, tls })).toMatchObject(by("canary"));
    expect(await world.call(canary, CONVERSION, { headers: OWNER, tls })).toMatchObject(refused(400, "BAD_REQUEST"));
    expect(await world.call(canary, reviewOf("pilot"), { tls })).toMatchObject(refused(400, "BAD_REQUEST"));
  });

  it("a server at a peer's address that is not this pod gets no review", async () => {
    // The pod has gone, and its address belongs to another pod of the mesh.
    world.tell([stable.peer, { ...canary.peer, uid: "earlier" }]);
    const answer = await world.call(stable, reviewOf("pilot"));
    expect(answer).toMatchObject(refused(503, "PEER_UNREACHABLE"));
    expect(answer.body).toMatch(/the server at 127.0.0.3 is not spiffe:.*earlier/);
    expect(canary.answered).toEqual([]);
  });
});
