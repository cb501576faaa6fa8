import { expect, it } from "vitest";
import { envelope, type Field } from "../../../../test/support/kube-protobuf.ts";
import { LEADER_ANNOTATION, readLockRecord } from "./lock-record.ts";

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const read = (resource: string, value: unknown, whole = true) => readLockRecord("json", resource, json(value), whole);
const NOTHING = { holder: undefined, durationMs: undefined, renewedMs: undefined };

it.each<[string, Field[], object]>([
  [
    "holder and duration",
    [
      [1, "me"],
      [2, 300],
    ],
    { ...NOTHING, holder: "me", durationMs: 300_000 },
  ],
  [
    "a release",
    [
      [1, ""],
      [2, 1],
    ],
    { ...NOTHING, holder: "", durationMs: 1_000 },
  ],
  ["no holder at all", [[5, 3]], { ...NOTHING, holder: "" }],
])("is read from a Lease in protobuf: %s", (_, spec, expected) => {
  const body = envelope("coordination.k8s.io/v1", "Lease", [
    [1, [[1, "lock"]]],
    [2, spec],
  ]);
  expect(readLockRecord("protobuf", "leases", body, true)).toEqual(expected);
});

it("is read from the old annotation, in JSON and in protobuf", () => {
  const text = JSON.stringify({ holderIdentity: "me", leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:02Z" });
  const expected = { holder: "me", durationMs: 15_000, renewedMs: Date.UTC(2026, 0, 1, 0, 0, 2) };
  expect(read("configmaps", { metadata: { annotations: { other: "x", [LEADER_ANNOTATION]: text } } })).toEqual(expected);
  const annotations: Field[] = [
    [
      12,
      [
        [1, "other"],
        [2, "x"],
      ],
    ],
    [
      12,
      [
        [1, LEADER_ANNOTATION],
        [2, text],
      ],
    ],
  ];
  const body = envelope("v1", "Endpoints", [[1, [[1, "lock"], ...annotations]]]);
  expect(readLockRecord("protobuf", "endpoints", body, true)).toEqual(expected);
});

it("has an empty holder for a whole Lease without one, and no holder for a patch that does not name one", () => {
  expect(read("leases", { metadata: {} })).toEqual({ ...NOTHING, holder: "" });
  expect(read("leases", { metadata: {} }, false)).toEqual(NOTHING);
  expect(read("leases", { spec: { holderIdentity: null } }, false)).toEqual({ ...NOTHING, holder: "" });
  expect(read("configmaps", { metadata: { annotations: { [LEADER_ANNOTATION]: null } } }, false)).toEqual({
    ...NOTHING,
    holder: "",
  });
});

it.each([
  ["a ConfigMap that is no lock", "configmaps", { metadata: { name: "settings" }, data: {} }],
  ["an annotation that is no record", "configmaps", { metadata: { annotations: { [LEADER_ANNOTATION]: "{" } } }],
])("is empty for %s", (_, resource, value) => expect(read(resource, value)).toEqual(NOTHING));

it("is empty for bytes that cannot be read", () => {
  expect(readLockRecord("json", "leases", Buffer.from("{"), true)).toEqual(NOTHING);
  expect(readLockRecord("protobuf", "leases", Buffer.from("k8s"), true)).toEqual(NOTHING);
});

it("has the time of the renewal in the same form in each encoding, and none if the time cannot be read", () => {
  const renewedMs = Date.UTC(2026, 0, 1, 0, 0, 2, 123);
  const json = (renewTime: unknown) => read("leases", { spec: { holderIdentity: "me", renewTime } });
  expect(json("2026-01-01T00:00:02.123456Z")).toEqual({ ...NOTHING, holder: "me", renewedMs });
  expect(json("soon")).toEqual({ ...NOTHING, holder: "me" });
  expect(json(7)).toEqual({ ...NOTHING, holder: "me" });
  const time: Field[] = [
    [1, Math.floor(renewedMs / 1_000)],
    [2, 123_456_000],
  ];
  const body = envelope("coordination.k8s.io/v1", "Lease", [
    [
      2,
      [
        [1, "me"],
        [4, time],
      ],
    ],
  ]);
  expect(readLockRecord("protobuf", "leases", body, true)).toEqual({ ...NOTHING, holder: "me", renewedMs });
});
