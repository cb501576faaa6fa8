import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { LEASES } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { createIsLed } from "./lease-holder.ts";

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
