import { expect, it } from "vitest";
import { callOf } from "../../../test/support/layer-call.ts";
import { readFrame } from "../../kube/codec/codec.ts";
import { expiredWatch } from "./expired.ts";

const answerTo = (accept: string) => {
  const { status, headers, body } = expiredWatch(
    callOf("GET", "/api/v1/pods?watch=1&resourceVersion=7", { headers: { accept } }),
  );
  return { status, type: headers["content-type"], body: Buffer.from(body as Uint8Array) };
};

it("is a stream of one error event, as the API server answers a version that is too old", () => {
  const { status, type, body } = answerTo("application/json");
  expect([status, type]).toEqual([200, "application/json"]);
  expect(JSON.parse(body.toString())).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
  expect(body.toString().endsWith("\n")).toBe(true);
});

it("is a frame of protobuf for a client that prefers that", () => {
  const { type, body } = answerTo("application/vnd.kubernetes.protobuf,application/json");
  expect(type).toBe("application/vnd.kubernetes.protobuf;stream=watch");
  expect(body.readUInt32BE(0)).toBe(body.length - 4);
  expect(readFrame("protobuf", body).type).toBe("ERROR");
});
