// Stores results of tests that depend on few sources. If these sources have not changed since the tests passed, `npm test` counts
// the stored results instead of running the tests. Only results without a failure and without a skipped test are stored, under
// the hash of all inputs, in the user's cache.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, isBuilt, makeRoom } from "../test/support/build-cache.ts";
import { sourceHash } from "../test/support/source-hash.ts";
import { ROOT } from "./run-command.ts";
import type { Results } from "./test-results.ts";

export interface StoredResults {
  /** The results of the last run on the same sources; undefined if there are none. Reports their use in one line. */
  read(): Results | undefined;
  keep(results: Results): void;
}

export interface StoredResultsOptions {
  /** Folders and files that the results depend on, relative to the repository. */
  readonly sources: readonly string[];
  /** Other inputs, such as a compiler's version. */
  readonly also?: string;
}

interface Stored {
  readonly passed: number;
  /** When the tests ran: ISO 8601. */
  readonly at: string;
}

/** @param what the name of the tests in messages */
export function storedResults(what: string, { sources, also = "" }: StoredResultsOptions): StoredResults {
  const name = what.replaceAll(/[^\w.-]+/g, "-");
  const paths = sources.map((path) => join(ROOT, path));
  const file = join(cacheDir(), `results-${name}-${sourceHash(paths, { also: `${process.version} ${also}` })}.json`);
  return {
    read() {
      if (process.env.NIGHTLY === "true" || !isBuilt(file)) return undefined;
      const { passed, at } = JSON.parse(readFileSync(file, "utf8")) as Stored;
      console.log(`NOT RUN AGAIN (sources unchanged since ${at}): ${what}, ${passed} passed`);
      return { passed, failures: [], skipped: [] };
    },
    keep({ passed, failures, skipped }) {
      if (failures.length > 0 || skipped.length > 0) return;
      makeRoom();
      const stored: Stored = { passed, at: new Date().toISOString() };
      const partial = `${file}.${process.pid}`;
      writeFileSync(partial, JSON.stringify(stored));
      renameSync(partial, file);
    },
  };
}
