// `node bench/handover.ts`: measures the time and cost of moving many namespaces in one edit of a VirtualApp with onLoss:
// InPlace. Ends with 1 if the mark is missed: the new owner is granted and sees everything within 5 s. (Its operator then
// reconciles one object after the other, at its own speed.)
//
// Options: --namespaces N (default 1000), --foos N in each (10), --json.
import { parseArgs } from "node:util";
import { runHandover } from "../test/support/handover/run-handover.ts";

const MARK_MS = 5_000;
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
const isMet = report.seenMs <= MARK_MS && report.grantedMs <= MARK_MS;
const perSecond = Math.round((total * 1000) / (report.reconciledMs - report.firstReconciledMs));
const lines = [
  `granted to the new owner            ${report.grantedMs} ms`,
  `its informer has all ${total} Foos     ${report.seenMs} ms   mark <= ${MARK_MS}: ${isMet ? "met" : "MISSED"}`,
  `the old owner's informer has none   ${report.leftMs} ms`,
  `Converged is True                   ${report.convergedMs} ms`,
  `no pod could write, by the status   ${report.noWriterSeconds ?? "?"} s`,
  `first / last status of the operator ${report.firstReconciledMs} / ${report.reconciledMs} ms (${perSecond}/s, one after the other)`,
  `snapshots acknowledged              ${report.acknowledged}`,
  `requests (two informers of the bench included): ${Object.entries(report.requests)
    .map(([what, count]) => `${what} ${count}`)
    .join(", ")}`,
  ...report.strangers.map((write) => `WRITTEN BY THE OLD OWNER AFTER THE NEW ONE: ${write}`),
];
process.stdout.write(values.json ? `${JSON.stringify({ namespaces, foosEach, ...report, isMet })}\n` : `${lines.join("\n")}\n`);
if (!isMet || report.strangers.length > 0) process.exitCode = 1;
