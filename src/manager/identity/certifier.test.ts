import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { splitPem } from "../../base/pem.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { authorityOf, createCaState } from "./ca-rotation.ts";
import { type Certifier, createCertifier } from "./certifier.ts";

const clock = createFakeClock();
const authority = authorityOf(createCaState(clock.now()), 0);
const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const spki = publicKey.export({ type: "spki", format: "der" });
const caller = { namespace: "shop", name: "p", uid: "uid-1" };
const spec = { initContainers: [{ name: "ctrlmesh-proxy" }] };
const pod: Pod = { metadata: { ...caller, labels: { [INJECTED_LABEL]: "app" } }, spec };
const redirection = { name: "ctrlmesh-iptables", securityContext: { capabilities: { add: ["NET_ADMIN"] } } };
const redirected: Pod = { ...pod, spec: { initContainers: [redirection, ...spec.initContainers] } };
const NAMES =
  "DNS:localhost, DNS:kubernetes, DNS:kubernetes.default, DNS:kubernetes.default.svc, DNS:kubernetes.default.svc.cluster.local, " +
  "IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, ";
const URI = "URI:spiffe://ctrlmesh/ns/shop/pod/p/uid-1";
let client: FakeKubeClient;
let listed: Pod | undefined;
let addresses: string[] | undefined;
let hasCa: boolean;
let isOfMesh: boolean | undefined;
let certify: Certifier;
beforeEach(() => {
  client = createFakeKubeClient();
  listed = pod;
  addresses = ["10.96.0.1", "fd00::1"];
  hasCa = true;
  isOfMesh = true;
  const identity = {
    get authority() {
      return hasCa ? authority : undefined;
    },
  };
  const pods = [
    { list: () => undefined, get: () => undefined },
    { list: () => [], get: () => listed },
  ];
  const names = { clusterIPs: () => addresses, clusterDomain: "cluster.local" };
  const options = { identity, pods, client, isOfMesh: () => isOfMesh, ...names, clock };
  certify = createCertifier({ ...options, lifetimeMs: 86_400_000 });
});

describe("a proxy's certificate", () => {
  it("is for its key and for every name of the API server, and not for the manager's", async () => {
    const result = await certify(caller, spki);
    if (result.kind !== "signed") throw new Error(result.message);
    const leaf = new X509Certificate(splitPem(result.reply.chainPem)[0] ?? "");
    expect(leaf.publicKey.equals(publicKey)).toBe(true);
    expect(leaf.verify(new X509Certificate(authority.trustPem).publicKey)).toBe(true);
    expect(leaf.subjectAltName).toBe(NAMES + URI);
    expect(leaf.validToDate.getTime() - clock.now()).toBe(86_400_000);
    expect(result.reply.trustPem).toBe(authority.trustPem);
    expect(client.calls).toEqual([]);
  });
  it("has the API server's addresses only in a pod whose connections are redirected, which not everybody may make", async () => {
    const namesOf = async () => {
      const result = await certify(caller, spki);
      if (result.kind !== "signed") throw new Error(result.message);
      return new X509Certificate(splitPem(result.reply.chainPem)[0] ?? "").subjectAltName;
    };
    listed = { ...pod, spec: { initContainers: [{ name: "ctrlmesh-iptables" }, ...spec.initContainers] } };
    expect(await namesOf()).toBe(NAMES + URI);
    listed = redirected;
    expect(await namesOf()).toBe(`${NAMES}IP Address:10.96.0.1, IP Address:FD00:0:0:0:0:0:0:1, ${URI}`);
  });
  it("is not given to a pod of a namespace that has no app and never had one, whatever its containers are", async () => {
    isOfMesh = false;
    listed = undefined;
    const { uid = "" } = client.put(PODS, pod).metadata;
    const refusal = { kind: "refuse", reason: "no-app", message: "there is no app in namespace shop" };
    expect(await certify({ ...caller, uid }, spki)).toEqual(refusal);
    expect(client.calls).toEqual([]);
    isOfMesh = undefined;
    expect(await certify({ ...caller, uid }, spki)).toMatchObject({ kind: "wait" });
  });
  it.each([
    ["no key", Buffer.alloc(0)],
    ["rubbish of the right length", Buffer.alloc(91, 7)],
    ["another curve", generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey.export({ type: "spki", format: "der" })],
    ["RSA", generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ type: "spki", format: "der" })],
    ["a point off the curve", Buffer.concat([spki.subarray(0, 90), Buffer.from([(spki[90] ?? 0) ^ 1])])],
    ["more than a key", Buffer.concat([spki, Buffer.alloc(1)])],
  ])("is not given for %s", async (_what, key) => {
    expect(await certify(caller, key)).toMatchObject({ kind: "refuse", reason: "bad-request" });
  });
  it("is given to a pod that no store has, if the API server knows it with this uid", async () => {
    listed = undefined;
    expect(await certify(caller, spki)).toMatchObject({ kind: "refuse", reason: "other-pod" });
    const { uid } = client.put(PODS, pod).metadata;
    expect(await certify({ ...caller, uid: uid ?? "" }, spki)).toMatchObject({ kind: "signed" });
    expect(await certify({ ...caller, uid: "older" }, spki)).toMatchObject({ kind: "refuse", reason: "other-pod" });
  });
  it("is given to a pod with the proxy's container even without the label, and not to a pod without the proxy", async () => {
    listed = { metadata: caller, spec };
    expect(await certify(caller, spki)).toMatchObject({ kind: "signed" });
    listed = undefined;
    // Whoever makes a pod can label it.
    const { uid } = client.put(PODS, { metadata: pod.metadata, spec: { containers: [{ name: "app" }] } }).metadata;
    expect(await certify({ ...caller, uid: uid ?? "" }, spki)).toMatchObject({ kind: "refuse", reason: "no-proxy" });
  });
  it("comes later while the CA, or the Service of a redirected pod, is not known", async () => {
    addresses = undefined;
    expect(await certify(caller, spki)).toMatchObject({ kind: "signed" });
    listed = redirected;
    expect(await certify(caller, spki)).toMatchObject({ kind: "wait" });
    addresses = [];
    hasCa = false;
    expect(await certify(caller, spki)).toMatchObject({ kind: "wait" });
    listed = undefined;
    client.before = () => {
      throw new StatusError("ServiceUnavailable", "not now");
    };
    expect(await certify(caller, spki)).toMatchObject({ kind: "wait", message: "the pod cannot be read now: not now" });
  });
});
