// Exit codes at the edges of docs/reference/cli.md.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startCli } from "../../test/support/cli.ts";
import { EXIT } from "./frame/exit.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

describe("the exit code", () => {
  it.skipIf(!existsSync("/dev/full"))("is 1 if the output cannot be written, as on a full disk", () => {
    const { status, stderr } = spawnSync("sh", ["-c", `"${process.execPath}" "${MAIN}" version --client > /dev/full`]);
    expect([status, String(stderr)]).toEqual([EXIT.failed, expect.stringContaining("writing the output")]);
  });

  it("is 0 if the reader has read enough", () => {
    const { status } = spawnSync("bash", ["-c", `"${process.execPath}" "${MAIN}" --help | true; exit "\${PIPESTATUS[0]}"`]);
    expect(status).toBe(EXIT.ok);
  });

  it.each([[["recover", ""]], [["recover", "cbk/"]], [["explain", "owner", ""]], [["explain", "owner", "ns/"]]])(
    "is that of a wrong command line for %j, whose name is empty",
    async (argv) => {
      expect(await startCli([]).run(...argv)).toMatchObject({ code: EXIT.usage });
    },
  );
});
