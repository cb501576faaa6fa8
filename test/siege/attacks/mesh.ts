// Attacks on the manager's gRPC port (5447): callers that never prove which pod they are, and a tenant whose own pod says that it is a sidecar
// and brings tables of its own making (H3 of the findings).
import { randomBytes } from "node:crypto";
import { byteFrames, callFrame, PREFACE } from "../../support/http2-frames.ts";
import type { Attack, Site } from "../attack.ts";
import { visit } from "../dial.ts";
import { registrationWith, type TableKind, tableOf } from "../foreign-tables.ts";
import { callMesh, type MeshCallOptions } from "../mesh-call.ts";

const HOLD_MS = 60_000;
const CONNECT_PATH = "/ctrlmesh.v1.Mesh/Connect";
/** The shape of a token, so that the API server has to say what it is. */
const INVENTED = "a.b.c";
/** Two calls, each with a body of which each byte is a frame. */
const BYTE_FRAMES = Buffer.concat([
  PREFACE,
  ...[1, 3].flatMap((stream) => [callFrame(stream, CONNECT_PATH, INVENTED), byteFrames(stream, Buffer.alloc(30_000, 1))]),
]);
const KIB_60 = "h".repeat(60 * 1024);

async function call(site: Site, options: MeshCallOptions, message: Uint8Array | undefined, holdMs = HOLD_MS): Promise<string> {
  const opened = await callMesh(site, site.targets.mesh, options);
  if (opened === undefined) return "refused";
  if (message !== undefined) opened.sendBytes(message);
  return opened.over(holdMs);
}

/** Registers with a table and stays. @param kind what the table costs */
async function bringTable(site: Site, kind: TableKind): Promise<string> {
  const { tenants, mesh } = site.targets;
  const pod = tenants[site.number % tenants.length];
  if (pod === undefined) return "no pod";
  const opened = await callMesh(site, mesh, { token: pod.token });
  if (opened === undefined) return "refused";
  const table = tableOf(kind, site.number % tenants.length);
  let isRegistered = false;
  opened.onMessage((message) => {
    if (!("welcome" in message)) return;
    const { epoch, wantedTables } = message.welcome;
    isRegistered = true;
    opened.send({ promise: { epoch, tables: wantedTables.length > 0 ? [table.bytes] : [] } });
  });
  opened.send(registrationWith(pod, table));
  const outcome = await opened.over(HOLD_MS);
  return isRegistered ? `registered, ${outcome}` : outcome;
}

export const MESH: readonly Attack[] = [
  {
    name: "mesh-unproved",
    on: "manager",
    perSecond: 120,
    maxOpen: 2_200,
    visit: (site) => visit(site, site.targets.mesh, { alpn: ["h2"], holdMs: HOLD_MS }),
  },
  {
    name: "mesh-no-token",
    on: "manager",
    perSecond: 10,
    maxOpen: 200,
    visit: (site) => call(site, {}, undefined),
  },
  {
    name: "mesh-invented-token",
    on: "manager",
    perSecond: 10,
    maxOpen: 200,
    visit: (site) => call(site, { token: `a.${Buffer.from(String(site.random())).toString("base64url")}.c` }, undefined),
  },
  {
    name: "mesh-byte-frames",
    on: "manager",
    perSecond: 10,
    maxOpen: 200,
    visit: (site) => visit(site, site.targets.mesh, { alpn: ["h2"], parts: [BYTE_FRAMES], holdMs: HOLD_MS }),
  },
  {
    name: "mesh-large-headers",
    on: "manager",
    perSecond: 20,
    maxOpen: 500,
    visit: (site) => call(site, { headers: { "x-filler": KIB_60 } }, undefined),
  },
  {
    name: "mesh-garbage-message",
    on: "manager",
    perSecond: 5,
    maxOpen: 50,
    visit: (site) => call(site, { token: tokenOf(site) }, randomBytes(1_000_000), 10_000),
  },
  {
    name: "mesh-other-pod",
    on: "manager",
    perSecond: 5,
    maxOpen: 50,
    async visit(site) {
      const opened = await callMesh(site, site.targets.mesh, { token: tokenOf(site) });
      if (opened === undefined) return "refused";
      const honest = { namespace: "foo-system", name: "foo-operator-0", uid: "", token: "" };
      opened.send(registrationWith(honest, tableOf("small")));
      return opened.over(10_000);
    },
  },
  {
    name: "mesh-tables-in-memory",
    on: "manager",
    perSecond: 0.5,
    maxOpen: 12,
    prepare: () => void tableOf("memory"),
    visit: (site) => bringTable(site, "memory"),
  },
  {
    name: "mesh-table-of-many-rules",
    on: "manager",
    perSecond: 0.2,
    maxOpen: 3,
    prepare: () => void tableOf("time"),
    visit: (site) => bringTable(site, "time"),
  },
];

function tokenOf({ targets: { tenants }, number }: Site): string | undefined {
  return tenants[number % tenants.length]?.token;
}
