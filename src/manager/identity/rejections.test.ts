import { pino } from "pino";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createRegistry } from "../../base/metrics.ts";
import { createRejections } from "./rejections.ts";

it("counts every refusal, and logs one line a minute for each reason and caller", async () => {
  const clock = createFakeClock();
  const registry = createRegistry("manager", "test");
  const lines: { who: string; repeated: number; unlogged: number }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const rejections = createRejections({ registry, clock, log });
  for (let times = 0; times < 1_000; times++) rejections.reject("handshake", "10.0.0.1", "not TLS");
  rejections.reject("other-pod", "shop/p", "another's token");
  expect(lines.map(({ who }) => who)).toEqual(["10.0.0.1", "shop/p"]);
  const text = await registry.metrics();
  expect(text).toMatch(/rejected_identities_total\{reason="handshake"\} 1000/);
  expect(text).toMatch(/rejected_identities_total\{reason="no-token"\} 0/);
  await clock.advance(60_000);
  rejections.reject("handshake", "10.0.0.1", "not TLS");
  expect(lines.at(-1)).toMatchObject({ who: "10.0.0.1", repeated: 999, unlogged: 0 });
});

it("logs at most 256 callers a minute, and in the next line the number of refusals that it did not log", async () => {
  const clock = createFakeClock();
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const rejections = createRejections({ registry: createRegistry("manager", "test"), clock, log });
  for (let place = 0; place < 10_000; place++) rejections.reject("handshake", `10.0.${place >> 8}.${place & 255}`, "not TLS");
  expect(lines).toHaveLength(256);
  await clock.advance(60_000);
  rejections.reject("handshake", "10.1.0.0", "not TLS");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ unlogged: 10_000 - 256 });
});
