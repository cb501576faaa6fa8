import { describe, expect, it } from "vitest";
import { MeshError } from "../../base/errors.ts";
import { StatusError } from "../../kube/status.ts";
import { answerTo } from "./rescue.ts";

describe("answerTo", () => {
  it("passes a Status on as it is", () => {
    const { status, code, unexpected } = answerTo(
      new StatusError("TooManyRequests", "ctrlmesh: slow down", { retryAfterSeconds: 3 }),
      "GET",
    );
    expect([status.code, status.details?.retryAfterSeconds, code, unexpected]).toEqual([429, 3, "TOO_MANY_REQUESTS", false]);
  });

  it.each([
    ["BAD_REQUEST_TARGET", 400],
    ["BAD_REQUEST", 400],
    ["UPSTREAM_UNREACHABLE", 503],
    ["UPSTREAM_BROKEN", 503],
    ["OVER_MEMORY_SHARE", 503],
    ["UPSTREAM_TIMEOUT", 504],
  ])("answers %s with %i and a message of ours", (errorCode, httpCode) => {
    const { status, code, unexpected } = answerTo(new MeshError(errorCode, "doing: failed"), "GET");
    expect([status.code, code, unexpected]).toEqual([httpCode, errorCode, false]);
    expect(status.message).toMatch(/^ctrlmesh: /);
  });

  it.each([
    ["UPSTREAM_UNREACHABLE", "POST", 1],
    ["UPSTREAM_BROKEN", "GET", 1],
    ["UPSTREAM_BROKEN", "POST", undefined],
    ["UPSTREAM_BROKEN", "PATCH", undefined],
  ])("suggests a retry after %s only where nothing can be done twice (%s: %s)", (code, method, seconds) => {
    expect(answerTo(new MeshError(code, "doing: failed"), method).status.details?.retryAfterSeconds).toBe(seconds);
  });

  // A caller's body that is too large or unreadable is refused where it is read, as 413 or 400.
  it.each(["BODY_TOO_LARGE", "CODEC_MALFORMED", "CODEC_TRUNCATED", "CODEC_TOO_LARGE", "CODEC_NOT_A_LIST", "CODEC_AMBIGUOUS"])(
    "answers %s with the API server's answer that could not be read, without a retry, and has it logged",
    (errorCode) => {
      const { status, code, unexpected } = answerTo(new MeshError(errorCode, "reading JSON: token abc"), "PUT");
      expect([status.code, status.reason, code, unexpected]).toEqual([500, "InternalError", errorCode, true]);
      expect(status.message).toMatch(/^ctrlmesh: the API server's answer /);
      expect(status.message).not.toContain("abc");
      expect(status.details?.retryAfterSeconds).toBeUndefined();
    },
  );

  it("tells nothing of an unexpected error", () => {
    const { status, code, unexpected } = answerTo(new TypeError("token abc is undefined"), "GET");
    expect([status.code, code, unexpected]).toEqual([500, "INTERNAL", true]);
    expect(status.message).not.toContain("abc");
  });
});
