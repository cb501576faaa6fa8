// The table of all attacks of `npm run siege`. To add one, add a row to a file of attacks/.
import type { Attack } from "./attack.ts";
import { connectionAttacks } from "./attacks/connections.ts";
import { MANAGER_REVIEWS } from "./attacks/manager-reviews.ts";
import { MESH } from "./attacks/mesh.ts";
import { SIDECAR_REVIEWS } from "./attacks/sidecar-reviews.ts";
import { TENANT_OBJECTS } from "./attacks/tenant-objects.ts";

export const ATTACKS: readonly Attack[] = [
  ...MANAGER_REVIEWS,
  ...connectionAttacks({
    name: "webhook",
    on: "manager",
    secure: true,
    path: "/validate",
    connections: 600,
    endpoint: ({ webhook }) => webhook,
  }),
  ...MESH,
  ...connectionAttacks({
    name: "manager-health",
    on: "manager",
    secure: false,
    path: "/metrics",
    connections: 1_000,
    endpoint: ({ managerHealth }) => managerHealth,
  }),
  ...TENANT_OBJECTS,
  ...SIDECAR_REVIEWS,
  ...connectionAttacks({
    name: "review",
    on: "sidecar",
    secure: true,
    path: "/validate",
    connections: 1_000,
    endpoint: ({ sidecar }) => sidecar.reviews,
  }),
  ...connectionAttacks({
    name: "sidecar-health",
    on: "sidecar",
    secure: false,
    path: "/metrics",
    connections: 1_000,
    endpoint: ({ sidecar }) => sidecar.health,
  }),
];

/** All, those on one side, or those of these names. @throws Error for a name that is none */
export function selectAttacks(only: string | undefined): readonly Attack[] {
  if (only === undefined) return ATTACKS;
  const wanted = only.split(",");
  const unknown = wanted.filter((name) => !ATTACKS.some((attack) => attack.on === name || attack.name === name));
  if (unknown.length > 0) throw new Error(`there is no attack ${unknown.join(" or ")}`);
  return ATTACKS.filter(({ on, name }) => wanted.includes(on) || wanted.includes(name));
}
