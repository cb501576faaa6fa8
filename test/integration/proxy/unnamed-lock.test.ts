// An elector whose lock the VirtualApp does not name, in a namespace that its subset does not own. It connects to localkube through the
// real proxy.
import { readFile } from "node:fs/promises";
import { afterEach, expect, it } from "vitest";
import { systemClock, systemRandom } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { LEASES, NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { UnnamedLockMessage } from "../../../src/mesh/contract/messages.ts";
import { election } from "../../../src/proxy/outbound/election/election.ts";
import { createLockGate } from "../../../src/proxy/outbound/election/lock-gate.ts";
import { isolate } from "../../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../../src/proxy/session/enforcer.ts";
import { NO_MEMORY } from "../../../src/proxy/session/memory.ts";
import { createLeaderElector } from "../../../src/runtime/leader-election.ts";
import { createLocalKube } from "../../localkube/localkube.ts";
import { eventually } from "../../support/eventually.ts";
import { isolateDeps } from "../../support/isolate.ts";
import { startProxy } from "../../support/proxy-harness.ts";
import { reportTo } from "../../support/report-to.ts";
import { routes } from "../../support/test-routes.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

it("is told which field to set, and leads once the field is set", async () => {
  const kube = createLocalKube();
  await kube.start(new AbortController().signal);
  closing.push(() => kube.stop());
  const admin = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "admin" });
  closing.push(() => admin.close());
  await admin.create(NAMESPACES, { metadata: { name: "shop" } });

  const enforcer = createEnforcer();
  const enforce = (version: number, lockName: string) =>
    enforcer.enforce(routes(version, { blue: ["a"], defaultSubset: ["shop"] }, { lockName }));
  enforce(1, "");
  const reports: (UnnamedLockMessage | null)[] = [];
  const api = { url: kube.url, ca: { certPem: kube.caPem }, open: 0 };
  const proxy = await startProxy({
    api,
    election: election({
      session: enforcer,
      report: reportTo({ unnamedLock: (lock) => void reports.push(lock) }),
      gate: createLockGate(systemClock, NO_MEMORY.lock),
      clock: systemClock,
      log: silentLogger(),
    }),
    isolate: isolate(isolateDeps({ session: enforcer, clock: systemClock })),
  });
  closing.push(() => proxy.stop());
  const caPem = await readFile(proxy.ready.ca, "utf8");
  const access = { server: proxy.ready.url, caPem, token: () => kube.token, userAgent: "operator" };
  const client = createKubeClient(access, { maxRetries: 0 });
  closing.push(() => client.close());

  await expect(client.get(LEASES, { namespace: "shop", name: "op" })).rejects.toMatchObject({
    status: {
      code: 403,
      message: expect.stringContaining('set spec.configuration.controller.leaderElectionName to "op"'),
      details: { causes: [{ reason: "LockNotNamed" }] },
    },
  });
  expect(reports).toEqual([{ lockName: "op", resource: "leases.coordination.k8s.io" }]);
  expect(kube.audit().filter(({ userAgent }) => userAgent === "operator")).toEqual([]);

  const elector = createLeaderElector({
    client,
    namespace: "shop",
    name: "op",
    identity: "pod-1",
    callbacks: { onStartedLeading: () => undefined },
    clock: systemClock,
    random: systemRandom,
    log: silentLogger(),
    retryPeriodMs: 100,
    renewDeadlineMs: 1_000,
    leaseDurationMs: 2_000,
  });
  await elector.start(new AbortController().signal);
  closing.push(async () => elector.stop?.());
  enforce(2, "op");
  await eventually(() => elector.isLeader);
  expect(await admin.get(LEASES, { namespace: "shop", name: "op---blue" })).toMatchObject({
    spec: { holderIdentity: "pod-1" },
  });
});
