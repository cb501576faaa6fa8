// The commands of the guides with the outputs that they promise, and how a test follows them as a reader does.
import { expect } from "vitest";
import { blocksOf, readDocument } from "./doc-blocks.ts";
import type { GuideSection } from "./docs-guide.ts";
import { eventually } from "./eventually.ts";

/** Commands that change nothing. A reader repeats such a command until the expected output appears. */
const READS = /^(kubectl (\S+ )*(get|wait) .*\n)+$/;
/** Enough for an operator to acquire a released lock, and to read a namespace that has moved. */
export const RETRY_MS = 15_000;

/** No pod is restarted for a namespace that is younger (docs/concepts/handover.md). A reader takes longer to come this far. */
const NEW_NAMESPACE_MS = 10_000;

export interface Step {
  readonly commands: string;
  readonly isRefused: boolean;
  readonly output: string | undefined;
}

/** The blocks marked `sh`, each with the block marked `text` that follows. */
export function stepsOf(sections: readonly GuideSection[]): readonly Step[] {
  return sections.flatMap(({ page, section }) => {
    const own = blocksOf(readDocument(page)).filter((block) => block.section === section);
    return own.flatMap(({ info, text }, at) => {
      const next = own[at + 1];
      const output = next?.info === "text" ? next.text : undefined;
      return info === "sh" || info === "sh refused" ? [{ commands: text, isRefused: info !== "sh", output }] : [];
    });
  });
}

/** Runs the blocks in their order, and compares what they print. Blocks of refused commands are left out. */
export async function follow(sections: readonly GuideSection[], bash: (commands: string) => Promise<string>): Promise<void> {
  for (const { commands, output } of stepsOf(sections).filter(({ isRefused }) => !isRefused)) {
    const run = async () => {
      const stdout = await bash(commands);
      if (output !== undefined) expect(shapeOf(stdout)).toEqual(shapeOf(output));
    };
    await (READS.test(commands) ? eventually(run, RETRY_MS) : run());
  }
}

/** Waits until the move of a namespace restarts pods. @param run kubectl */
export async function untilNotNew(namespace: string, run: (...args: string[]) => Promise<string>): Promise<void> {
  await eventually(async () => {
    const created = await run("get", "namespace", namespace, "-o", "jsonpath={.metadata.creationTimestamp}");
    return Date.now() - Date.parse(created) > NEW_NAMESPACE_MS + 1_000; // the timestamp has whole seconds
  }, 2 * NEW_NAMESPACE_MS);
}

/** The lines of an output without pods' hashes and times, sorted, since hashes decide the order of pods. */
function shapeOf(output: string): string[] {
  const lines = output.trim().split("\n");
  return lines
    .map((line) =>
      line
        .replace(/_[0-9a-f-]{36}/g, "_UID")
        .replace(/-[bcdfghjklmnpqrstvwxz2456789]{7,10}-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])/g, "-POD")
        .replace(/\b\d+(\.\d+)? ms\b/g, "T")
        .replace(/\b(\d+m)?\d+s\b/g, "T")
        .replace(/route \d+/g, "route N")
        .replace(/\s+/g, " ")
        .trim(),
    )
    .sort();
}
