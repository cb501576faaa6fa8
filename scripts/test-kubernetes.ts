// `npm run test:kubernetes -- VERSION [vitest arguments]`: the core of the end-to-end tests on the programs of an older Kubernetes, which the first
// run builds. The newest version is that of `npm test`.
import { buildKubeAssets, olderVersions } from "../test/support/kube-assets/build.ts";
import { runVitest } from "./run-vitest.ts";
import { sum, summaryLine } from "./test-results.ts";

const EXIT_USAGE = 64;
/**
 * What must work on every supported version. The other files test what an older version does not have (shardSelector, mutating policies), or
 * nothing that depends on it.
 */
const CORE = [
  "e2e/divide",
  "e2e/kubectl",
  "e2e/object-selector",
  "nightly/lists-by-namespace",
  "e2e/locks",
  "e2e/status",
  "e2e/restart",
  "e2e/adopt-and-leave",
  "e2e/sharding",
  "e2e/traffic",
  "e2e/injection",
  "e2e/webhooks",
  "e2e/operator-webhooks",
  "e2e/identity",
  "e2e/crds",
  "nightly/chart",
  "nightly/install",
  "nightly/clients",
];

const [version = "", ...more] = process.argv.slice(2);
if (!olderVersions().includes(version)) {
  process.stderr.write(
    `usage: npm run test:kubernetes -- VERSION [vitest arguments]; VERSION is one of ${olderVersions().join(", ")}\n`,
  );
  process.exit(EXIT_USAGE);
}
process.stderr.write(`building Kubernetes ${version} (once)\n`);
process.env.KUBEBUILDER_ASSETS = await buildKubeAssets(version);
process.env.NIGHTLY = "true";
const files = CORE.map((name) => `test/${name}.test.ts`);
const { results } = await runVitest(["--project", "e2e", "--project", "alone", ...(more.length > 0 ? more : files)]);
// Tests of what the version does not have are skipped, each with its reason in the output.
const total = sum([results], { strict: false, allowedSkips: new Set() });
for (const failure of total.failures) console.log(`FAILED ${failure}`);
console.log(`\n${summaryLine(total)}`);
process.exitCode = total.failures.length > 0 ? 1 : 0;
