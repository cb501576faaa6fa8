import { expect, it } from "vitest";
import { isLoopback } from "./health-server.ts";

it.each([
  ["127.0.0.1", true],
  ["127.8.8.8", true],
  ["::1", true],
  ["::ffff:127.0.0.1", true],
  ["10.244.0.7", false],
  ["::ffff:10.244.0.7", false],
  ["fd00::127", false],
  ["1127.0.0.1", false],
  [undefined, false],
])("%s is from inside the pod: %s", (address, inside) => {
  expect(isLoopback(address)).toBe(inside);
});
