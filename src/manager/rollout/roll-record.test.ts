import { describe, expect, it } from "vitest";
import { expectedRevision, formatRecord, parseRecord, recordOf } from "./roll-facts.ts";

const RECORD = { updateRevision: "foo-b", podRevision: { "foo-10": "foo-a", "foo-9": "foo-b" } };

describe("the record of a rollout", () => {
  it("is read as it was written, in a stable order", () => {
    expect(parseRecord(formatRecord(RECORD))).toEqual(RECORD);
    expect(formatRecord(RECORD)).toBe('{"updateRevision":"foo-b","podRevision":{"foo-9":"foo-b","foo-10":"foo-a"}}');
  });
  it.each([undefined, "", "[]", "{", '{"updateRevision":"","podRevision":{}}', '{"updateRevision":"b","podRevision":{"a":1}}'])(
    "is none if it cannot be read: %s",
    (text) => expect(parseRecord(text)).toBeUndefined(),
  );
  it("takes no pod for reached because an earlier rollout kept it at the revision to which a later one returns", () => {
    const pods = [{ name: "foo-10", revision: "foo-b" }];
    expect(recordOf(RECORD, "foo-a", ["foo-10"], pods).podRevision).toEqual({ "foo-10": "foo-b" });
  });
  it("gives a pod that it does not name the revision of the last pod", () => {
    expect(expectedRevision(RECORD, "foo-9")).toBe("foo-b");
    expect(expectedRevision(RECORD, "foo-11")).toBe("foo-a");
    expect(expectedRevision({ updateRevision: "foo-b", podRevision: {} }, "foo-0")).toBeUndefined();
  });
});
