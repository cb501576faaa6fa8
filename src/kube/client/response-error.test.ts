import { expect, test } from "vitest";
import { createStatus } from "../status.ts";
import { responseError, retryAfterMs, watchError } from "./response-error.ts";

test("reason, code, message and details of a Status are kept", () => {
  const sent = { ...createStatus("Conflict", "modified", { name: "x", kind: "pods" }), code: 409 };
  const error = responseError(409, JSON.stringify(sent), undefined, "updating pods a/x");
  expect(error.status).toEqual(sent);
  expect(error.message).toBe("updating pods a/x: modified");
});

test("an unusual code for a reason is kept", () => {
  const error = responseError(500, JSON.stringify({ ...createStatus("Timeout", "slow"), code: 500 }), undefined, "x");
  expect(error.status).toMatchObject({ reason: "Timeout", code: 500 });
});

test("Retry-After comes from the header or from the details", () => {
  expect(retryAfterMs(responseError(429, "slow down", "3", "x"))).toBe(3000);
  const sent = createStatus("TooManyRequests", "slow down", { retryAfterSeconds: 2 });
  expect(retryAfterMs(responseError(429, JSON.stringify(sent), undefined, "x"))).toBe(2000);
  expect(retryAfterMs(responseError(503, "", undefined, "x"))).toBeUndefined();
});

test("an answer that is not a Status becomes one by its HTTP code", () => {
  expect(responseError(502, "<html>bad gateway</html>", undefined, "x").status).toMatchObject({
    reason: "InternalError",
    code: 502,
  });
  expect(responseError(418, "", undefined, "x").status).toMatchObject({ reason: "BadRequest", code: 418, message: "HTTP 418" });
  expect(responseError(404, "{}", undefined, "x").status).toMatchObject({ reason: "NotFound", code: 404 });
});

test("an ERROR event carries a Status", () => {
  expect(watchError({ ...createStatus("Expired", "too old"), reason: "" }, "x").status).toMatchObject({
    reason: "Expired",
    code: 410,
  });
  expect(watchError(undefined, "x").status.reason).toBe("InternalError");
});
