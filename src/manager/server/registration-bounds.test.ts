import { expect, it } from "vitest";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { CAPABILITIES, claimsOf } from "../../../test/support/updates.ts";
import type { RegistrationMessage } from "../../wire/messages.ts";
import { namedRoute } from "../../wire/route-type.ts";
import { exceededBound, registeredPod } from "./registration-bounds.ts";

const REGISTRATION: RegistrationMessage = {
  pod: { namespace: "ops", name: "d0", uid: "1" },
  ...{ proxyVersion: "", capabilities: CAPABILITIES, streamNumber: 1, epoch: 0, route: claimsOf() },
};
const boundOf = (part: Partial<RegistrationMessage>) => exceededBound({ ...REGISTRATION, ...part });
const route = snapshot(table([], {}));

it("accepts the largest registration of a proxy", () => {
  const defaultOnlyUserAgents = Array.from({ length: 64 }, () => "ü".repeat(256));
  const largest = { ...route, callers: { userAgent: "a".repeat(256), defaultOnlyUserAgents, stripManagedFields: true } };
  expect(boundOf({ route: claimsOf(largest, largest, largest, largest, largest) })).toBeUndefined();
  expect(boundOf({ route: null })).toBeUndefined();
});

it("refuses a route that is larger than any route without its table", () => {
  const large = { ...namedRoute(route), body: new Uint8Array(64 * 1024 + 1) };
  const text = "a route in a registration has at most 65536 bytes";
  expect(boundOf({ route: { ...claimsOf(), acknowledged: large } })).toBe(text);
  expect(boundOf({ route: { ...claimsOf(route), inDoubt: [namedRoute(route), large] } })).toBe(text);
});

it("refuses more routes in doubt than a proxy has", () => {
  const many = Array.from({ length: 16 }, () => route);
  expect(boundOf({ route: claimsOf(undefined, ...many) })).toBe("a registration names at most 15 routes in doubt, not 16");
});

it("refuses capabilities that would fill the memory", () => {
  const many = Array.from({ length: 65 }, (_, index) => `${index}`);
  expect(boundOf({ capabilities: many })).toBe("a registration lists at most 64 capabilities, not 65");
  expect(boundOf({ capabilities: ["type:route", "x".repeat(65)] })).toBe("a capability has at most 64 characters");
});

it("names the pod, unless a name is missing or too long", () => {
  expect(registeredPod(REGISTRATION)).toBe("ops/d0");
  for (const pod of [null, { namespace: "ops", name: "", uid: "" }, { namespace: "o".repeat(254), name: "d0", uid: "" }])
    expect(registeredPod({ ...REGISTRATION, pod })).toBeUndefined();
});
