import { X509Certificate } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { MeshError } from "../../base/errors.ts";
import { silentLogger } from "../../base/log.ts";
import { splitPem } from "../../base/pem.ts";
import type { Authority } from "./authority.ts";
import type { CaState } from "./ca-rotation.ts";
import { advanceCa, authorityOf, createCaState } from "./ca-rotation.ts";
import { createMeshIdentity, managerNames, type SigningIdentity } from "./mesh-identity.ts";

const HOUR = 3_600_000;
const names = managerNames({
  namespace: "ctrlmesh-system",
  serviceName: "ctrlmesh-manager",
  clusterDomain: "cluster.local",
  serverNames: ["mesh.example.com", "10.0.0.1"],
});
let clock: FakeClock;
let state: CaState;
let answer: () => Authority;
let identity: SigningIdentity;
let changes: number;
const running = new AbortController();
beforeEach(() => {
  clock = createFakeClock();
  state = createCaState(clock.now());
  answer = () => authorityOf(state, 0);
  identity = createMeshIdentity({
    source: { refresh: async () => answer() },
    names,
    clock,
    random: () => 1,
    log: silentLogger(),
  });
  changes = 0;
  identity.onChange(() => changes++);
});
const serving = () => new X509Certificate(splitPem(identity.serving?.certPem ?? "")[0] ?? "");

describe("the identity of a replica", () => {
  it("is a certificate of the mesh for the manager's names, and for none of the API server's", async () => {
    expect([identity.serving, identity.trustPem]).toEqual([undefined, ""]);
    await identity.start(running.signal);
    expect(identity.trustPem).toBe(state.signing.certPem);
    expect(serving().verify(new X509Certificate(state.signing.certPem).publicKey)).toBe(true);
    expect(serving().subjectAltName).toBe(
      "DNS:ctrlmesh-manager.ctrlmesh-system.svc, DNS:ctrlmesh-manager.ctrlmesh-system.svc.cluster.local, DNS:mesh.example.com, IP Address:10.0.0.1",
    );
    expect(serving().validToDate.getTime() - clock.now()).toBe(24 * HOUR);
    expect(identity.expiries).toEqual({
      ca: new X509Certificate(state.signing.certPem).validToDate.getTime(),
      serving: clock.now() + 24 * HOUR,
    });
  });
  it("is renewed at half its life, by the wall clock", async () => {
    await identity.start(running.signal);
    const first = identity.serving;
    await clock.advance(11.9 * HOUR);
    expect([identity.serving, changes]).toEqual([first, 1]);
    clock.stepWall(0.2 * HOUR);
    await clock.advance(60_000);
    expect([identity.serving === first, changes]).toEqual([false, 2]);
  });
  it("follows the CA: first its trust, then its signatures", async () => {
    await identity.start(running.signal);
    const first = identity.serving;
    state = advanceCa({ ...state, rotationWanted: true }, { now: clock.now(), settleMs: 0 })?.state ?? state;
    await clock.advance(60_000);
    expect([identity.serving === first, splitPem(identity.trustPem).length, changes]).toEqual([true, 2, 2]);
    expect(Object.keys(identity.expiries)).toEqual(["ca", "next-ca", "serving"]);
    state = advanceCa(state, { now: clock.now(), settleMs: 0 })?.state ?? state;
    await identity.refresh();
    expect([splitPem(identity.serving?.certPem ?? "").length, changes]).toEqual([2, 3]);
    await identity.refresh();
    expect(changes).toBe(3);
  });
  it("keeps its certificate if the CA cannot be read any more, and has the reason", async () => {
    await identity.start(running.signal);
    const first = identity.serving;
    answer = () => {
      throw new MeshError("CERTIFICATE_INVALID", "reading Secret a/b, key tls.key: gone");
    };
    await clock.advance(13 * HOUR);
    expect(identity.problem).toBe("reading Secret a/b, key tls.key: gone");
    expect([identity.serving === first, identity.trustPem]).toEqual([false, state.signing.certPem]);
    answer = () => authorityOf(state, 0);
    await clock.advance(60_000);
    expect(identity.problem).toBeUndefined();
  });
  it("waits at the start for the API server and for a missing CA, but not for an invalid one", async () => {
    answer = () => {
      throw new MeshError("CA_MISSING", "there is no Secret a/b yet");
    };
    const started = identity.start(running.signal);
    await clock.advance(5_000);
    expect([identity.problem, identity.serving]).toEqual(["there is no Secret a/b yet", undefined]);
    answer = () => authorityOf(state, 0);
    await clock.advance(10_000);
    await started;
    expect(identity.serving).toBeDefined();
    const other = createMeshIdentity({
      names,
      clock,
      random: () => 1,
      log: silentLogger(),
      source: { refresh: () => Promise.reject(new MeshError("CERTIFICATE_INVALID", "half a key")) },
    });
    await expect(other.start(running.signal)).rejects.toThrow("half a key");
  });
  it("ends", async () => {
    await identity.start(running.signal);
    await identity.stop();
    expect(clock.pending).toBe(0);
  });
  it("does not outlive its CA", async () => {
    await clock.advance(3_649.5 * 24 * HOUR);
    await identity.start(running.signal);
    expect(identity.expiries.serving).toBe(identity.expiries.ca);
  });
});
