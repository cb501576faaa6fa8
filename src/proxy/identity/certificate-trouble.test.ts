import { X509Certificate } from "node:crypto";
import { pino } from "pino";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createCa } from "../../base/certificates.ts";
import { LOG_FORMAT } from "../../base/log.ts";
import { createCertificateTrouble } from "./certificate-trouble.ts";

const HOUR_MS = 3_600_000;

function setup() {
  const clock = createFakeClock();
  const said: [string, string][] = [];
  const write = (line: string) => {
    const { level, msg } = JSON.parse(line) as { level: string; msg: string };
    said.push([level, msg]);
  };
  const trouble = createCertificateTrouble("manager:5447", clock, pino(LOG_FORMAT, { write }));
  const certificate = new X509Certificate(createCa({ commonName: "x", now: clock.now(), days: 1 }).certPem);
  return { clock, said, trouble, certificate };
}

it("without a certificate the proxy is not ready, and gives the reason once it is known", () => {
  const { said, trouble } = setup();
  expect(trouble.notReady).toBe("no certificate from the manager yet");
  trouble.update(undefined, undefined);
  expect(said).toEqual([]);
  trouble.update(undefined, "no answer");
  trouble.update(undefined, "no answer");
  expect(trouble.notReady).toBe("no certificate from the manager yet: no answer");
  expect(said.map(([level]) => level)).toEqual(["warn"]);
});

it("a failing renewal is a warning at first, an error in the last quarter, and not ready at the end, logged every ten minutes", async () => {
  const { clock, said, trouble, certificate } = setup();
  trouble.update(certificate, undefined);
  expect([trouble.notReady, trouble.warning, said]).toEqual([undefined, undefined, []]);
  const at = async (hours: number) => {
    said.length = 0;
    await clock.advance(hours * HOUR_MS - clock.monotonicMs());
    for (let look = 0; look < 3; look++) trouble.update(certificate, "no answer");
    return said.map(([level]) => level);
  };
  expect(await at(12)).toEqual(["warn"]);
  expect(trouble.warning).toMatch(/^the serving certificate ends at 2026-01-02T00:00:00.000Z .* no answer$/);
  expect(trouble.notReady).toBeUndefined();
  expect(await at(19)).toEqual(["error"]);
  expect(await at(19.1)).toEqual([]);
  expect(await at(19.5)).toEqual(["error"]);
  expect(await at(24)).toEqual(["error"]);
  expect(trouble.warning).toBeUndefined();
  expect(trouble.notReady).toMatch(/was good until 2026-01-02T00:00:00.000Z: the operator cannot connect any more: no answer$/);
  trouble.update(certificate, "the manager refuses this pod");
  expect(said).toHaveLength(2); // another reason is news
  const next = new X509Certificate(createCa({ commonName: "x", now: clock.now(), days: 1 }).certPem);
  trouble.update(next, undefined);
  expect([trouble.notReady, trouble.warning, trouble.reason]).toEqual([undefined, undefined, undefined]);
});
