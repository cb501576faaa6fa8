// The session's stream to the manager with the mesh's identity: the proxy verifies the manager and sends its own token.

import { rm } from "node:fs/promises";
import { status } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KeyCertificate } from "../../../src/base/certificates.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createMeshAccess, createMeshTrustStore } from "../../../src/proxy/identity/manager-access.ts";
import { createSession } from "../../../src/proxy/session/create-session.ts";
import { createStateFolder } from "../../../src/proxy/state/state-folder.ts";
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
import { wholeUpdate } from "../../support/updates.ts";

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

async function runManager(options: ManagerOptions = {}, port = 0): Promise<ScriptedManager> {
  const started = await startManager(port, { host: MANAGER_HOST, tls: managerCertificate(ca), ...options });
  stops.push(() => started.stop());
  return started;
}

async function session(endpoint: string) {
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const trust = createMeshTrustStore(volume.caFile, log);
  const registry = createRegistry("proxy", "test");
  const started = createSession({
    config: { manager: endpoint, podNamespace: "shop", podName: "shop-0", podUid: "uid-1" },
    state: createStateFolder(volume.dataDir, log),
    access: createMeshAccess(endpoint, trust, volume.tokenFile),
    log,
    clock: systemClock,
    random: () => 0.5,
    registry,
    backoff: { baseMs: 20, maxMs: 50 },
  });
  stops.push(() => started.stop());
  await started.start(new AbortController().signal);
  return started;
}

const sendRoutes = async (manager: ScriptedManager, version: number) => {
  await eventually(() => manager.streams.length === 1);
  manager.send({ update: wholeUpdate(routes(version, { blue: ["a"] }), version) });
};

describe("the stream to the manager, with the identity of the mesh", () => {
  it("carries the token that the file has when each stream opens", async () => {
    const manager = await runManager();
    const proxy = await session(manager.endpoint);
    await sendRoutes(manager, 1);
    await eventually(() => proxy.current?.snapshot.version === 1);
    await volume.write({ ca: ca.certPem, token: "second-pod-bound-secret" });
    manager.streams[0]?.end();
    await eventually(() => manager.authorizations.length === 2);
    expect(manager.authorizations).toEqual([`Bearer ${TOKEN}`, "Bearer second-pod-bound-secret"]);
  });

  it("opens once the token's file exists, and until then the session's trouble and one log line name the file", async () => {
    await volume.write({ ca: ca.certPem });
    const manager = await runManager();
    const proxy = await session(manager.endpoint);
    await eventually(() => proxy.trouble !== undefined);
    expect(proxy.trouble).toBe(`reading this pod's token from ${volume.tokenFile}: there is no such file`);
    await volume.write({ ca: ca.certPem, token: TOKEN });
    await sendRoutes(manager, 1);
    await eventually(() => proxy.current !== undefined && proxy.trouble === undefined);
    expect(lines.filter((line) => line.includes("no way to the manager"))).toHaveLength(1);
  });

  it("is tried again after the manager refuses it, while the enforced routes stay", async () => {
    for (const code of [status.UNAUTHENTICATED, status.PERMISSION_DENIED]) {
      let refusal = false;
      await rm(volume.dataDir, { recursive: true, force: true });
      lines = [];
      const manager = await runManager({
        admit: () => (refusal ? { code, details: "the token is bound to pod shop/other" } : undefined),
      });
      const proxy = await session(manager.endpoint);
      await sendRoutes(manager, 1);
      await eventually(() => proxy.current?.snapshot.version === 1);
      refusal = true;
      manager.streams[0]?.end();
      await eventually(() => proxy.trouble?.includes("refuses this pod") === true);
      expect(proxy.trouble).toContain("the token is bound to pod shop/other");
      expect(proxy.current?.snapshot.version).toBe(1);
      await eventually(() => manager.authorizations.length >= 3);
      expect(lines.filter((line) => line.includes("no way to the manager"))).toHaveLength(1);
      refusal = false;
      await sendRoutes(manager, 2);
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
  ])("does not open to %s, which gets no token", async (_name, options, why) => {
    const manager = await runManager(options());
    const proxy = await session(manager.endpoint);
    await eventually(() => why.test(proxy.trouble ?? ""));
    expect(manager.authorizations).toEqual([]);
    expect(manager.received).toEqual([]);
  });

  it("follows a redirect only to a server with the manager's certificate, not to a proxy", async () => {
    const thief = await startManager(0, { tls: proxyCertificate(ca) });
    stops.push(() => thief.stop());
    const real = await startManager(0, { tls: managerCertificate(ca) }); // on 127.0.0.1, which is not in its certificate
    stops.push(() => real.stop());
    const manager = await runManager();
    await session(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    manager.send({ redirect: { endpoint: thief.endpoint } });
    await eventually(() => manager.authorizations.length === 2);
    expect(thief.authorizations).toEqual([]);
    await eventually(() => manager.streams.length === 1);
    manager.send({ redirect: { endpoint: real.endpoint } });
    await eventually(() => real.streams.length === 1);
  });

  it("trusts the CAs that the file has at each moment: the old one and the new one, then the new one alone", async () => {
    const [older, newer] = [ca, newMeshCa("newer")];
    const manager = await runManager();
    await session(manager.endpoint);
    await eventually(() => manager.streams.length === 1);
    await volume.write({ ca: `${older.certPem}${newer.certPem}`, token: TOKEN });
    manager.stop();
    const second = await runManager({ tls: managerCertificate(newer) }, manager.port);
    await eventually(() => second.streams.length === 1);
    await volume.write({ ca: newer.certPem, token: TOKEN });
    second.stop();
    const third = await runManager({ tls: managerCertificate(newer) }, manager.port);
    await eventually(() => third.streams.length === 1);
    third.stop();
    const deposed = await runManager({ tls: managerCertificate(older) }, manager.port);
    const seen = lines.length;
    await eventually(() => lines.slice(seen).some((line) => /self-signed|unable to (verify|get)/.test(line)));
    expect(deposed.authorizations).toEqual([]);
  });
});
