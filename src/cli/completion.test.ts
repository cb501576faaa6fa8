// The scripts of `ctrlmesh completion`, with apps whose names are shell syntax.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";

const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-completion-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Whoever may create a ShardingConfig chooses this name: the API server does not check names of owners. */
const childOf = (name: string) =>
  ({
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "ShardingConfig",
    metadata: {
      namespace: "ops",
      name: "child",
      ownerReferences: [{ apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig", name, controller: true }],
    },
  }) as unknown as FakeObject;

/** What bash proposes, if `ctrlmesh __complete` prints these words. */
function proposedByBash(script: string, printed: string, typed: string): string[] {
  writeFileSync(join(dir, "words"), printed);
  writeFileSync(join(dir, "ctrlmesh"), `#!/bin/sh\ncat "${dir}/words"\n`);
  chmodSync(join(dir, "ctrlmesh"), 0o755);
  const program = `${script}\nCOMP_WORDS=(ctrlmesh status "$1"); COMP_CWORD=2; _ctrlmesh; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, PATH: `${dir}:${process.env.PATH}` };
  return execFileSync("bash", ["-c", program, "bash", typed], { env, cwd: dir, encoding: "utf8" }).split("\n").filter(Boolean);
}

describe("completion", () => {
  it("of bash runs no command that a name contains, and proposes the words that begin as typed", async () => {
    const { stdout: script } = await startCli([]).run("completion", "bash");
    expect(proposedByBash(script, "shop\n$(touch ran)\n`touch ran`\nshelf\nother", "sh")).toEqual(["shop", "shelf"]);
    expect(existsSync(join(dir, "ran"))).toBe(false);
  });

  it.each(["$(touch ran)", "`id`", "a;id", "a b", "*", "a\nb", "-oyaml", "\u001b[2J"])(
    "does not propose the app %j",
    async (name) => {
      const { stdout } = await startCli([movingApp(), childOf(name)]).run("__complete", "status", "");
      expect(stdout.trim()).toBe("shop");
    },
  );
});
