import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { readBody, snapshot, table } from "../../../test/support/route-table.ts";
import { claimsOf } from "../../../test/support/updates.ts";
import { namedRoute } from "../../mesh/contract/route-type.ts";
import { exceededBound } from "./judge-proxy.ts";
import { createRegistrationTables } from "./registration-tables.ts";
import { createSharedTables } from "./shared-resources.ts";

const NAMES = Array.from({ length: 10_000 }, (_, at) => `namespace-${at}`);

/** A table within all bounds, and a field that no version knows: objects of 40 keys, each another. */
function tableOfKeys(number: number): Buffer {
  const keys = (at: number) => Array.from({ length: 40 }, (_, key) => `"${number}${at.toString(36)}.${key.toString(36)}":0`);
  const objects = Array.from({ length: 4_250 }, (_, at) => `{${keys(at).join()}}`);
  return Buffer.from(`{"x":[${objects.join()}],"classes":[],"rules":[],"fenced":[],"retained":[],"sharedResources":[]}`);
}

describe("bodies that a pod makes up", () => {
  it("take less than a second of the manager's only thread for all tables of a registration", () => {
    const tables = Array.from({ length: 5 }, (_, number) => tableOfKeys(number));
    const inDoubt = tables.map((bytes) => {
      const route = namedRoute(snapshot(table([], {})));
      const tableHash = createHash("sha256").update(bytes).digest("base64");
      return { ...route, body: Buffer.from(JSON.stringify({ ...(readBody(route.body) as object), tableHash })) };
    });
    const shared = createSharedTables();
    const stream = createRegistrationTables({ clock: createFakeClock(), tables: shared, namespaces: () => NAMES }).open();
    expect(stream.ask({ ...claimsOf(), inDoubt }, true)).toHaveLength(5);
    const before = process.threadCpuUsage();
    stream.take(tables, "shop");
    expect(process.threadCpuUsage(before).user / 1_000).toBeLessThan(1_000);
  });

  it("are not confused with the largest route that a VirtualApp can ask for, with any user agents", () => {
    const defaultOnlyUserAgents = Array.from({ length: 64 }, () => "\u0001".repeat(256));
    const route = snapshot(table([], {}), { callers: { userAgent: "", defaultOnlyUserAgents, stripManagedFields: false } });
    const claims = { ...claimsOf(), acknowledged: namedRoute(route) };
    const registration = { pod: null, proxyVersion: "", capabilities: [], streamNumber: 1, epoch: 0, route: claims };
    expect(exceededBound(registration)).toBeUndefined();
  });
});
