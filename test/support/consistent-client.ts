// test/operators/go-consistent as a process: a client that waits, before each read from its cache, until the cache has its own writes.
import { expect } from "vitest";
import { type Child, startChild } from "./child-process.ts";
import { goProgram } from "./go-build.ts";

/** Longer than any event takes on a busy machine, and shorter than the pause between two bookmarks. */
export const MAX_READ_MS = 5_000;

interface Step {
  readonly namespace: string;
  readonly step: string;
  readonly ms: number;
  readonly error?: string;
  readonly code?: number;
  readonly atMs: number;
}

export interface Consistent {
  readonly steps: Step[];
  /** The last version that the store reported, and when. */
  readonly store: { version: bigint; atMs: number };
  readonly child: Child;
}

export async function startConsistent(
  name: string,
  kubeconfig: string,
  namespaces: readonly string[],
  pause = "20ms",
): Promise<Consistent> {
  const steps: Step[] = [];
  const store = { version: 0n, atMs: 0 };
  const child = await startChild({
    name,
    command: await goProgram("test/operators/go-consistent"),
    args: [`--namespaces=${namespaces.join(",")}`, `--pause=${pause}`],
    env: { KUBECONFIG: kubeconfig, POD_NAME: name },
    readyLine: false,
    onLine(line) {
      if (!line.startsWith("{")) return;
      const said = JSON.parse(line) as Step & { version?: string };
      if (said.step !== undefined) steps.push({ ...said, ms: said.ms ?? 0, atMs: Date.now() });
      if (said.version !== undefined) Object.assign(store, { version: BigInt(said.version), atMs: Date.now() });
    },
  });
  return { steps, store, child };
}

const isRead = ({ step }: Step) => step === "get" || step === "list";
export const reads = ({ steps }: Consistent) => steps.filter(isRead);
export const percentile = (values: readonly number[], part: number) =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * part)] ?? Number.NaN;

/** Every read had the write before it, and none waited for another event than that of its own write. */
export function expectFast(client: Consistent): void {
  const isEnd = ({ error = "" }: Step) => /terminated signal|context canceled/.test(error);
  expect(reads(client).filter((step) => step.error !== undefined && !isEnd(step))).toEqual([]);
  expect(reads(client).filter(({ ms }) => ms > MAX_READ_MS)).toEqual([]);
}
