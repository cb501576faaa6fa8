import { expect, it } from "vitest";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { watchDeadlineMs } from "./watch-care.ts";

it.each([
  ["timeoutSeconds=300", 330_000],
  ["timeoutSeconds=0", 7_200_000],
  ["timeoutSeconds=x", 7_200_000],
  ["", 7_200_000],
  ["timeoutSeconds=99999999999", 2 ** 31 - 1],
])("a watch with %j is ended by us after %d ms", (query, expected) => {
  expect(watchDeadlineMs(parseRequestInfo("GET", `/api/v1/pods?watch=1&${query}`))).toBe(expected);
});
