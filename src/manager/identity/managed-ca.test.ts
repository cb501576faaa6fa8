import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { silentLogger } from "../../base/log.ts";
import { LEASES, SECRETS } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { createCaState } from "./ca-rotation.ts";
import { createIsLed, createManagedCa, formatCaSecret, parseCaSecret, ROTATE_ANNOTATION } from "./managed-ca.ts";

const ref = { namespace: "ctrlmesh-system", name: "ctrlmesh-ca" };
const settleMs = 600_000;
const { signal } = new AbortController();
let clock: FakeClock;
let client: FakeKubeClient;
beforeEach(() => {
  clock = createFakeClock();
  client = createFakeKubeClient();
});

function replica(isLeader: boolean, isLed = false) {
  const role = { isLeader, isLed };
  return {
    role,
    source: createManagedCa({
      client,
      ...ref,
      isLeader: () => role.isLeader,
      isLed: async () => role.isLed,
      settleMs,
      clock,
      log: silentLogger(),
    }),
  };
}
const stored = () => {
  const secret = client.read(SECRETS, ref);
  return secret && parseCaSecret(secret);
};
const askForRotation = () => {
  const secret = client.read(SECRETS, ref);
  if (secret === undefined) throw new Error("no Secret");
  client.put(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations: { [ROTATE_ANNOTATION]: "now" } } });
};

describe("the mesh's own CA", () => {
  it("is made once, even if many replicas start together", async () => {
    const replicas = [replica(false), replica(false), replica(true)];
    const found = await Promise.all(replicas.map(({ source }) => source.refresh(signal)));
    expect(new Set(found.map(({ trustPem }) => trustPem)).size).toBe(1);
    expect(found[0]?.signer).toEqual(stored()?.signing);
  });
  it("is rotated by the leader alone, and read by the others", async () => {
    const [leader, other] = [replica(true), replica(false)];
    const before = await leader.source.refresh(signal);
    await other.source.refresh(signal);
    askForRotation();
    expect((await other.source.refresh(signal)).trustPem).toBe(before.trustPem);
    const begun = await leader.source.refresh(signal);
    expect([begun.signer, begun.trustPem]).toEqual([before.signer, before.trustPem + (begun.nextPem ?? "?")]);
    expect(await other.source.refresh(signal)).toEqual(begun);
    await clock.advance(settleMs);
    expect((await other.source.refresh(signal)).signer).toEqual(before.signer);
    const done = await leader.source.refresh(signal);
    expect([done.signer.certPem, done.chainPem]).toEqual([begun.nextPem, stored()?.cross.join("")]);
    expect(await other.source.refresh(signal)).toEqual(done);
  });
  it("is not rotated twice by two replicas that believe they lead", async () => {
    const [one, two] = [replica(true), replica(true)];
    await one.source.refresh(signal);
    askForRotation();
    const [a, b] = await Promise.all([one.source.refresh(signal), two.source.refresh(signal)]);
    expect([a.nextPem, b.nextPem].filter((pem) => pem !== undefined)).toEqual([stored()?.next?.certPem]);
    expect((await one.source.refresh(signal)).nextPem).toBe((await two.source.refresh(signal)).nextPem);
  });
  it("is put back as it was if the Secret is deleted under running managers", async () => {
    const [leader, other] = [replica(true), replica(false)];
    const before = await leader.source.refresh(signal);
    await other.source.refresh(signal);
    client.remove(SECRETS, ref);
    expect(await other.source.refresh(signal)).toEqual(before);
    expect(client.read(SECRETS, ref)).toBeUndefined();
    expect(await leader.source.refresh(signal)).toEqual(before);
    expect(stored()?.signing).toEqual(before.signer);
  });
  it("is not replaced by a replica that starts meanwhile: it waits for the leader, and makes a CA when no replica leads", async () => {
    const leader = replica(true);
    const before = await leader.source.refresh(signal);
    client.remove(SECRETS, ref);
    const young = replica(false, true);
    await expect(young.source.refresh(signal)).rejects.toMatchObject({ code: "CA_MISSING" });
    expect(client.read(SECRETS, ref)).toBeUndefined();
    expect(await leader.source.refresh(signal)).toEqual(before);
    expect(await young.source.refresh(signal)).toEqual(before);
    client.remove(SECRETS, ref);
    expect((await replica(false, false).source.refresh(signal)).trustPem).not.toBe(before.trustPem);
  });
  it("is never replaced by another one in the Secret", async () => {
    const { source } = replica(true);
    await source.refresh(signal);
    client.put(SECRETS, formatCaSecret(createCaState(clock.now()), { metadata: ref }));
    await expect(source.refresh(signal)).rejects.toThrow(/key tls\.crt: not the mesh's CA nor its successor/);
  });
  it("is not replaced if the Secret cannot be read", async () => {
    client.put(SECRETS, { metadata: ref, data: {} });
    await expect(replica(true).source.refresh(signal)).rejects.toMatchObject({ code: "CERTIFICATE_INVALID" });
    client.before = () => {
      throw new StatusError("Forbidden", "no");
    };
    await expect(replica(true).source.refresh(signal)).rejects.toThrow("no");
    expect(client.calls.filter(({ verb }) => verb !== "get")).toEqual([]);
  });
});

it("a replica leads while it renews its lease, and for the lease's duration after that", async () => {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const metadata = { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" };
  const isLed = createIsLed({ client, ...metadata, clock });
  const { signal } = new AbortController();
  const renew = (holderIdentity: string, renewTime: string) =>
    client.put(LEASES, { metadata, spec: { holderIdentity, leaseDurationSeconds: 15, renewTime } });
  expect(await isLed(signal)).toBe(false);
  renew("other", "1");
  expect(await isLed(signal)).toBe(true);
  await clock.advance(14_000);
  renew("other", "2");
  expect(await isLed(signal)).toBe(true);
  await clock.advance(14_999);
  expect(await isLed(signal)).toBe(true);
  await clock.advance(1);
  expect(await isLed(signal)).toBe(false);
  renew("", "3");
  expect(await isLed(signal)).toBe(false);
  client.before = () => {
    throw new StatusError("Forbidden", "no");
  };
  await expect(isLed(signal)).rejects.toThrow("no");
});
