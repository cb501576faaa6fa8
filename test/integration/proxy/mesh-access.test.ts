// The session's stream to the manager with the mesh's identity: whom the proxy trusts, and how it says who it is.
import { rm } from "node:fs/promises";
import { status } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KeyCertificate } from "../../../src/base/certificates.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createMeshAccess } from "../../../src/proxy/identity/manager-access.ts";
import { createMeshTrustStore } from "../../../src/proxy/identity/mesh-trust.ts";
import { createSession } from "../../../src/proxy/session/create-session.ts";
import { snapshotToWire } from "../../../src/wire/snapshot-codec.ts";
import { eventually } from "../../support/eventually.ts";
import {
  createProjectedVolume,
  MANAGER_HOST,
  managerCertificate,
  newMeshCa,
  type ProjectedVolume,
  proxyCertificate,
} from "../../support/mesh-identity.ts";
import { type ManagerOptions, type ScriptedManager, startManager } from "../../support/scripted-manager.ts";
import { routes } from "../../support/test-routes.ts";

const TOKEN = "first-pod-bound-secret";

let ca: KeyCertificate;
let volume: ProjectedVolume;
let lines: string[];
let stops: (() => unknown)[];

beforeEach(async () => {
  stops = [];
  lines = [];
  ca = newMeshCa();
  volume = await createProjectedVolume();
  stops.push(() => volume.remove());
  await volume.write({ ca: ca.certPem, token: TOKEN });
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  expect(lines.join()).not.toContain("pod-bound-secret");
});

async function manager(options: ManagerOptions = {}, port = 0): Promise<ScriptedManager> {
  const started = await startManager(port, { host: MANAGER_HOST, tls: managerCertificate(ca), ...options });
  stops.push(() => started.stop());
  return started;
}

async function session(endpoint: string) {
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const trust = createMeshTrustStore(volume.caFile, log);
  const registry = createRegistry("proxy", "test");
  const made = createSession({
    config: { manager: endpoint, podNamespace: "shop", podName: "shop-0", podUid: "uid-1", dataDir: volume.dataDir },
    access: createMeshAccess({ manager: endpoint, trust, tokenFile: volume.tokenFile }),
    log,
    clock: systemClock,
    random: () => 0.5,
    registry,
    backoff: { baseMs: 20, maxMs: 50 },
  });
  stops.push(() => made.stop());
  await made.start(new AbortController().signal);
  return made;
}

const sends = async (boss: ScriptedManager, version: number) => {
  await eventually(() => boss.streams.length === 1);
  boss.send({ snapshot: snapshotToWire(routes(version, { blue: ["a"] }), version) });
};

describe("the stream to the manager, with the identity of the mesh", () => {
  it("carries the token as it is at each stream", async () => {
    const boss = await manager();
    const proxy = await session(boss.endpoint);
    await sends(boss, 1);
    await eventually(() => proxy.current?.snapshot.version === 1);
    await volume.write({ ca: ca.certPem, token: "second-pod-bound-secret" });
    boss.streams[0]?.end();
    await eventually(() => boss.authorizations.length === 2);
    expect(boss.authorizations).toEqual([`Bearer ${TOKEN}`, "Bearer second-pod-bound-secret"]);
  });

  it("is opened once the token is there; until then the trouble names the file, and is logged once", async () => {
    await volume.write({ ca: ca.certPem });
    const boss = await manager();
    const proxy = await session(boss.endpoint);
    await eventually(() => proxy.trouble !== undefined);
    expect(proxy.trouble).toBe(`reading this pod's token from ${volume.tokenFile}: there is no such file`);
    await volume.write({ ca: ca.certPem, token: TOKEN });
    await sends(boss, 1);
    await eventually(() => proxy.current !== undefined && proxy.trouble === undefined);
    expect(lines.filter((line) => line.includes("no way to the manager"))).toHaveLength(1);
  });

  it("that is refused leaves what is in force, and is asked for again", async () => {
    for (const code of [status.UNAUTHENTICATED, status.PERMISSION_DENIED]) {
      let refusal = false;
      await rm(volume.dataDir, { recursive: true, force: true });
      lines = [];
      const boss = await manager({
        admit: () => (refusal ? { code, details: "the token is bound to pod shop/other" } : undefined),
      });
      const proxy = await session(boss.endpoint);
      await sends(boss, 1);
      await eventually(() => proxy.current?.snapshot.version === 1);
      refusal = true;
      boss.streams[0]?.end();
      await eventually(() => proxy.trouble?.includes("refuses this pod") === true);
      expect(proxy.trouble).toContain("the token is bound to pod shop/other");
      expect(proxy.current?.snapshot.version).toBe(1);
      await eventually(() => boss.authorizations.length >= 3);
      expect(lines.filter((line) => line.includes("no way to the manager"))).toHaveLength(1);
      refusal = false;
      await sends(boss, 2);
      await eventually(() => proxy.current?.snapshot.version === 2 && proxy.trouble === undefined);
    }
  });

  it.each<[string, () => ManagerOptions, RegExp]>([
    ["a server of another CA", () => ({ tls: managerCertificate(newMeshCa("other")) }), /self-signed|unable to (verify|get)/],
    [
      "a proxy of the mesh in the manager's place",
      () => ({ tls: proxyCertificate(ca) }),
      /does not match certificate's altnames/,
    ],
  ])("does not go to %s, nor does the token", async (_name, options, why) => {
    const boss = await manager(options());
    const proxy = await session(boss.endpoint);
    await eventually(() => why.test(proxy.trouble ?? ""));
    expect(boss.authorizations).toEqual([]);
    expect(boss.received).toEqual([]);
  });

  it("does not follow a redirect to a proxy's address: the name that counts is the manager's", async () => {
    const thief = await startManager(0, { tls: proxyCertificate(ca) });
    stops.push(() => thief.stop());
    const real = await startManager(0, { tls: managerCertificate(ca) }); // 127.0.0.1, for which its certificate is not
    stops.push(() => real.stop());
    const boss = await manager();
    await session(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    boss.send({ redirect: { endpoint: thief.endpoint } });
    await eventually(() => boss.authorizations.length === 2);
    expect(thief.authorizations).toEqual([]);
    await eventually(() => boss.streams.length === 1);
    boss.send({ redirect: { endpoint: real.endpoint } });
    await eventually(() => real.streams.length === 1);
  });

  it("follows the CA's file: the old CA and the new one, then the new one alone", async () => {
    const [older, newer] = [ca, newMeshCa("newer")];
    const boss = await manager();
    await session(boss.endpoint);
    await eventually(() => boss.streams.length === 1);
    await volume.write({ ca: `${older.certPem}${newer.certPem}`, token: TOKEN });
    boss.stop();
    const second = await manager({ tls: managerCertificate(newer) }, boss.port);
    await eventually(() => second.streams.length === 1);
    await volume.write({ ca: newer.certPem, token: TOKEN });
    second.stop();
    const third = await manager({ tls: managerCertificate(newer) }, boss.port);
    await eventually(() => third.streams.length === 1);
    third.stop();
    const deposed = await manager({ tls: managerCertificate(older) }, boss.port);
    const seen = lines.length;
    await eventually(() => lines.slice(seen).some((line) => /self-signed|unable to (verify|get)/.test(line)));
    expect(deposed.authorizations).toEqual([]);
  });
});
