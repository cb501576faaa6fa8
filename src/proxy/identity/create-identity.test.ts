import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createProjectedVolume, newMeshCa, type ProjectedVolume, proxyCertificate } from "../../../test/support/mesh-identity.ts";
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import { createStateFolder } from "../state/state-folder.ts";
import { createIdentity, type IdentityConfig } from "./create-identity.ts";

let volume: ProjectedVolume;
const ca = newMeshCa();

beforeEach(async () => {
  volume = await createProjectedVolume();
  await volume.write({ ca: ca.certPem, token: "a.b.c" });
});
afterEach(() => volume.remove());

async function identityOf(config: Pick<IdentityConfig, "identity" | "tls">) {
  const { access, certificate } = createIdentity({
    config: { manager: "manager.mesh.svc:5447", dataDir: volume.dataDir, ...config },
    state: createStateFolder(volume.dataDir, silentLogger()),
    registry: new Registry(),
    clock: createFakeClock(),
    random: () => 0,
    log: silentLogger(),
  });
  const { channelOptions, credentials, metadata } = await access.pass();
  return { access, credentials, certificate, options: channelOptions, authorization: metadata.get("authorization") };
}
const mesh = () => ({ managerCa: volume.caFile, token: volume.tokenFile });

it("without identity the proxy sends no token, and serves with a CA of its own", async () => {
  const { certificate, authorization, options } = await identityOf({ identity: undefined, tls: undefined });
  expect([authorization, options]).toEqual([[], {}]);
  expect(certificate.caFile).toBe(join(volume.dataDir, "ca.crt"));
});

it("with the mesh's identity the proxy sends its token to the manager's name only, and operators trust it by the mesh's CA", async () => {
  const { certificate, authorization, options } = await identityOf({ identity: mesh(), tls: undefined });
  expect(authorization).toEqual(["Bearer a.b.c"]);
  expect(options).toEqual({ "grpc.ssl_target_name_override": "manager.mesh.svc" });
  expect(certificate.caFile).toBe(volume.caFile);
});

it("with the mesh's identity and files the proxy serves with the files", async () => {
  const [pair, tls] = [proxyCertificate(ca), { cert: `${volume.caFile}.crt`, key: `${volume.caFile}.key` }];
  await writeFile(tls.cert, pair.certPem);
  await writeFile(tls.key, pair.keyPem);
  const { certificate, authorization } = await identityOf({ identity: mesh(), tls });
  await certificate.start(new AbortController().signal);
  expect(certificate.current().cert).toBe(pair.certPem);
  await certificate.stop();
  expect(authorization).toEqual(["Bearer a.b.c"]);
});

it("the credentials are new only when the CAs change", async () => {
  const { access, credentials } = await identityOf({ identity: mesh(), tls: undefined });
  expect((await access.pass()).credentials).toBe(credentials);
  await volume.write({ ca: newMeshCa().certPem, token: "a.b.c" });
  const changed = (await access.pass()).credentials;
  expect(changed).not.toBe(credentials);
  await volume.write({ ca: "half a fi", token: "a.b.c" });
  expect((await access.pass()).credentials).toBe(changed);
});
