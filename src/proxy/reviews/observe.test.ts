import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { observe } from "./observe.ts";
import type { ReviewCall } from "./review-call.ts";

it("an invented review with long texts takes little of the log and of the records", async () => {
  const lines: object[] = [];
  const accessLog = { pick: () => (fields: object) => void lines.push(fields) };
  const handle = observe({ metrics: { answered: () => undefined }, accessLog, clock: createFakeClock() })(async () => ({
    status: 200,
    headers: {},
    body: null,
  }));
  const long = "x\n".repeat(5_000);
  const subject = {
    apiVersion: "admission.k8s.io/v1",
    uid: long,
    subresource: long,
    namespace: long,
    name: long,
    operation: "CREATE",
    resource: { group: long, version: long, resource: long },
    labels: undefined,
    oldLabels: undefined,
    dryRun: false,
  } as const;
  const record = { peerNames: undefined, address: "10.0.0.66", subject };
  await handle({ method: "POST", target: `/${long}`, headers: {}, body: null, record } as unknown as ReviewCall);
  for (const line of lines) expect(JSON.stringify(line).length).toBeLessThan(2_000);
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain("\\n");
});
