// `node bench/handover.ts`: measures the time and cost of moving many namespaces in one edit of a VirtualApp
// with onLoss: InPlace. Exits with 1 if the new owner's grant or its full informer takes longer than 5 s, or
// if the old owner writes after the new owner. The time in which the new owner's operator reconciles the
// objects has no limit.
//
// Options: --namespaces N (default 1000), --foos N in each (10), --json.
import { parseArgs } from "node:util";
import { runHandover } from "../test/handover/run-handover.ts";

const TARGET_MS = 5_000;
const { values } = parseArgs({
  options: {
    namespaces: { type: "string", default: "1000" },
    foos: { type: "string", default: "10" },
    json: { type: "boolean", default: false },
  },
});
const [namespaces, foosEach] = [Number(values.namespaces), Number(values.foos)];
if (!Number.isInteger(namespaces) || namespaces < 1 || !Number.isInteger(foosEach) || foosEach < 1) {
  process.stderr.write("handover: --namespaces and --foos must be positive integers\n");
  process.exit(64);
}
const report = await runHandover({ namespaces, foosEach, note: (text) => void process.stderr.write(`handover: ${text}\n`) });
const total = namespaces * foosEach;
const isMet = report.seenMs <= TARGET_MS && report.grantedMs <= TARGET_MS;
const perSecond = Math.round((total * 1000) / (report.reconciledMs - report.firstReconciledMs));
const lines = [
  `granted to the new owner            ${report.grantedMs} ms`,
  `its informer has all ${total} Foos     ${report.seenMs} ms   target <= ${TARGET_MS}: ${isMet ? "met" : "MISSED"}`,
  `the old owner's informer has none   ${report.removedMs} ms`,
  `Converged is True                   ${report.convergedMs} ms`,
  `no pod could write, by the status   ${report.noWriterSeconds ?? "?"} s`,
  `first / last status of the operator ${report.firstReconciledMs} / ${report.reconciledMs} ms (${perSecond}/s, one after the other)`,
  `snapshots acknowledged              ${report.acknowledged}`,
  `requests, including those of the bench's two informers: ${Object.entries(report.requests)
    .map(([request, count]) => `${request} ${count}`)
    .join(", ")}`,
  ...report.writesByOldOwner.map((write) => `WRITTEN BY THE OLD OWNER AFTER THE NEW ONE: ${write}`),
];
process.stdout.write(values.json ? `${JSON.stringify({ namespaces, foosEach, ...report, isMet })}\n` : `${lines.join("\n")}\n`);
if (!isMet || report.writesByOldOwner.length > 0) process.exitCode = 1;
