// The warm-up with a certificate that the proxy has made itself, as in a pod without the mesh's identity.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Clock, sleep, systemClock, systemRandom } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { CallAbort } from "../../../src/proxy/http/call-signal.ts";
import { createCertificateHolder, type ServingCertificate } from "../../../src/proxy/identity/serving-certificate.ts";
import { createOwnCertificate } from "../../../src/proxy/identity/watched-certificate.ts";
import { createEnforcer } from "../../../src/proxy/session/enforcer.ts";
import { LIST_PATH, OBJECT_PATH } from "../../../src/proxy/warm-up/stand-in.ts";
import { createWarmUp } from "../../../src/proxy/warm-up/warm-up.ts";
import { startWarmUpProxy, type WarmUpProxy } from "../../../src/proxy/warm-up/warm-up-proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { snapshot, table } from "../../support/route-table.ts";

const { signal } = new AbortController();
const MAX_MS = 54_321;
let dataDir: string;
let certificate: ServingCertificate;
let socketsBefore: number;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "ctrlmesh-warm-up-"));
  const holder = createCertificateHolder(createRegistry("proxy", "test"));
  certificate = createOwnCertificate({ dataDir, holder, clock: systemClock, log: silentLogger() });
  await certificate.start(signal);
  socketsBefore = openSockets();
});

afterEach(async () => {
  await eventually(async () => openSockets() === socketsBefore, 5_000);
  await certificate.stop();
  await rm(dataDir, { recursive: true });
});

/** Sockets and servers that this process has open. */
function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP")).length;
}

interface Options {
  readonly maxMs?: number;
  readonly of?: ServingCertificate;
  readonly cpuShare?: number;
  readonly hasRoutes?: boolean;
}

function setup({ maxMs = MAX_MS, of = certificate, cpuShare = 1, hasRoutes = true }: Options = {}) {
  const done: { readonly requests: number }[] = [];
  const failures: unknown[] = [];
  const log = Object.assign(silentLogger(), {
    debug: (fields: { readonly requests: number }) => void done.push(fields),
    info: (fields: unknown) => void failures.push(fields),
  });
  let timeIsOver = () => {};
  const clock: Clock = {
    ...systemClock,
    after(ms, run) {
      if (ms !== MAX_MS) return systemClock.after(ms, run);
      timeIsOver = run;
      return { cancel: () => undefined };
    },
  };
  const session = createEnforcer();
  if (hasRoutes) session.enforce(snapshot(table([], {})));
  const common = { session, clock, random: systemRandom, log };
  const warmUp = createWarmUp({ certificate: of, maxMs, cpuShare: () => cpuShare, ...common });
  return { warmUp, session, failures, done, timeIsOver: () => timeIsOver(), requests: () => done[0]?.requests };
}

describe("the warm-up", () => {
  it("sends 500 requests that all succeed", async () => {
    const { warmUp, failures, requests } = setup();
    await warmUp.start(signal);
    await eventually(async () => requests() === 500, 30_000);
    await warmUp.stop();
    expect(failures).toEqual([]);
  });

  it("begins with the first routes", async () => {
    const { warmUp, session, failures, done, requests } = setup({ hasRoutes: false });
    await warmUp.start(signal);
    await sleep(systemClock, 200);
    expect([failures, done, openSockets()]).toEqual([[], [], socketsBefore]);
    session.enforce(snapshot(table([], {})));
    await eventually(async () => requests() === 500, 30_000);
    await warmUp.stop();
  });

  it.each(["the time is over", "the process ends", "the process is told to end"])("stops in the middle when %s", async (why) => {
    const { warmUp, failures, requests, timeIsOver } = setup();
    const process = new AbortController();
    await warmUp.start(process.signal);
    // The stand-in, the server, and connections.
    await eventually(async () => openSockets() >= socketsBefore + 4, 10_000);
    if (why === "the time is over") timeIsOver();
    else if (why === "the process ends") await warmUp.stop();
    else process.abort();
    await eventually(async () => requests() !== undefined, 5_000);
    expect(requests()).toBeLessThan(500);
    expect(failures).toEqual([]);
  });

  it.each([
    ["without time", () => ({ maxMs: 0 })],
    ["with too little CPU", () => ({ cpuShare: 0.2 })],
    ["without a CA that it knows", () => ({ of: { ...certificate, caFile: undefined } })],
  ])("does nothing %s", async (_, options) => {
    const { warmUp, failures, done } = setup(options());
    await warmUp.start(signal);
    await warmUp.stop();
    expect([failures, done]).toEqual([[], []]);
  });

  it("logs one line when its CA cannot be read", async () => {
    const caFile = join(dataDir, "no-ca.pem");
    await writeFile(caFile, "no certificate");
    const { warmUp, failures, done } = setup({ of: { ...certificate, caFile } });
    await warmUp.start(signal);
    await eventually(async () => failures.length === 1, 5_000);
    await warmUp.stop();
    expect(done).toEqual([]);
  });
});

describe("the warm-up's proxy", () => {
  let proxy: WarmUpProxy;
  const get = (path: string) => proxy.get(path, new CallAbort());

  beforeEach(async () => {
    proxy = await startWarmUpProxy(certificate, certificate.caFile ?? "", { clock: systemClock, random: systemRandom });
  });
  afterEach(() => proxy.stop());

  it("filters its list, of which it owns 40 of 300 objects", async () => {
    const objects = (await get(LIST_PATH)) / (await get(OBJECT_PATH));
    expect(objects).toBeGreaterThan(38);
    expect(objects).toBeLessThan(42);
  });

  it("refuses what its made-up subset does not own", async () => {
    await expect(get(OBJECT_PATH.replace("own-0", "other-0"))).rejects.toThrow("status 403");
  });
});
