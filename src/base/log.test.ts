import { pino } from "pino";
import { expect, test } from "vitest";
import { LOG_FORMAT, silentLogger } from "./log.ts";

test("the compiler refuses a field with a key that every line already has", () => {
  const log = silentLogger();
  const request = { namespace: "shop", name: "app" };
  // @ts-expect-error a line has one name
  log.warn({ name: "app", times: 2 }, "written");
  // @ts-expect-error also in an object that is spread
  log.warn({ ...request, times: 2 }, "written");
  // @ts-expect-error a line has one message
  log.warn({ msg: "text" }, "written");
  log.warn({ object: request.name, times: 2 }, "written");
});

test("a line has its level as a word, its time in RFC 3339, and an error with its causes", () => {
  const lines: string[] = [];
  const log = pino({ name: "ctrlmesh-manager", ...LOG_FORMAT }, { write: (line: string) => void lines.push(line) });
  log.warn({ err: new Error("listing leases", { cause: new Error("connection refused") }) }, "not leading");
  const { level, time, name, msg, err } = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
  expect({ level, name, msg }).toEqual({ level: "warn", name: "ctrlmesh-manager", msg: "not leading" });
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(err).toMatchObject({ message: "listing leases", cause: { message: "connection refused" } });
});
