import { describe, expect, it } from "vitest";
import { movingApp as app, condition, type FakeObject, startCli } from "../../test/support/cli.ts";
import { MeshError } from "../base/errors.ts";
import { noAnswer } from "./frame/command.ts";
import { EXIT } from "./frame/exit.ts";
import { screenOf } from "./frame/screen.ts";

const READY = [condition("Ready", "True", "InSync"), condition("Converged", "True", "InSync")];
const other = { ...app({}, READY), metadata: { namespace: "ops", name: "other", generation: 3 } } as unknown as FakeObject;
const CLEAR = "\u001b[H\u001b[2J";
const sequencesOf = (text: string) => text.split("\u001b").length - 1;

/** Runs the command line for some polls. @param between what happens before each of the later ones */
async function watch(cli: ReturnType<typeof startCli>, words: readonly string[], between: readonly (() => void)[]) {
  const ended = cli.run("status", "-w", ...words);
  await cli.clock.flush();
  for (const happens of between) {
    happens();
    await cli.clock.advance(2_000);
  }
  cli.interrupt();
  return ended;
}
const nothing = () => {};

describe("status --watch", () => {
  it("appends an app that has changed below the time, and no app for its ages alone", async () => {
    const objects = [app(), other];
    const { code, stdout, stderr } = await watch(
      startCli(objects),
      [],
      [
        nothing,
        () => {
          objects[0] = app({}, READY);
        },
        () => {
          objects.pop();
        },
      ],
    );
    expect([code, stderr]).toEqual([EXIT.ok, ""]);
    const blocks = stdout.split(/^(?=\d{4}-)/m);
    expect(blocks.map((block) => block.split("\n")[0])).toEqual(
      ["00", "04", "06"].map((seconds) => `2026-01-01T00:00:${seconds}.000Z`),
    );
    expect(blocks[0]).toContain("VirtualApp ops/shop: ready (Draining)");
    expect(blocks[0]).toContain("VirtualApp ops/other: ready (InSync)");
    expect(blocks[1]).toContain("VirtualApp ops/shop: ready (InSync)");
    expect(blocks[1]).not.toContain("ops/other");
    expect(blocks[2]).toBe("2026-01-01T00:00:06.000Z\nVirtualApp ops/other: is gone\n");
  });

  it("prints a document in one line for each change, with -o json", async () => {
    const objects = [app()];
    const change = () => {
      objects[0] = app({}, READY);
    };
    const { stdout } = await watch(startCli(objects), ["-o", "json"], [nothing, change, nothing]);
    const documents = stdout.trim().split("\n");
    const reasons = documents.map((line) => JSON.parse(line).items[0].ready.reason);
    expect(reasons).toEqual(["Draining", "InSync"]);
  });

  it("redraws a terminal, with the ages of now", async () => {
    const cli = startCli([app()]);
    cli.terminal.screen = { rows: 40, columns: 200 };
    const { stdout } = await watch(cli, [], [nothing]);
    const [, first, second] = stdout.split(CLEAR);
    expect(first).toContain("Draining for 41s");
    expect(second).toMatch(/^2026-01-01T00:00:02.000Z {2}Ctrl-C ends\n\nVirtualApp ops\/shop: .*\n/);
    expect(second).toContain("Draining for 43s");
  });

  it("shows as much as the window has room for, with long lines counted as they wrap", async () => {
    const cli = startCli([app(), other]);
    cli.terminal.screen = { rows: 9, columns: 40 };
    const { stdout } = await watch(cli, [], []);
    const lines = stdout.slice(CLEAR.length).trimEnd().split("\n");
    const rows = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 40)), 0);
    expect(rows).toBeLessThan(9);
    expect(lines.at(-1)).toMatch(/^and \d+ more lines$/);
  });

  it("lets no text of the cluster drive the terminal", async () => {
    const hostile = [condition("Converged", "False", "X", "\u001b[2J\u001b]52;c;ZXZpbA==\u0007")];
    const cli = startCli([app({}, hostile)]);
    cli.terminal.screen = { rows: 40, columns: 200 };
    const { stdout } = await watch(cli, [], []);
    expect(sequencesOf(stdout)).toBe(sequencesOf(CLEAR));
  });

  it("says once that the API server is away, goes on, and says that it is back", async () => {
    const objects = [app()];
    const cli = startCli(objects);
    const { code, stdout, stderr } = await watch(
      cli,
      [],
      [
        () => cli.setOutage(noAnswer("connection refused")),
        nothing,
        () => {
          cli.setOutage(undefined);
          objects[0] = app({}, READY);
        },
      ],
    );
    expect(code).toBe(EXIT.ok);
    expect(stderr).toBe("looking again every 2 s: connection refused\nthe API server answers again\n");
    expect(stdout).toContain("VirtualApp ops/shop: ready (InSync)");
  });

  it("begins also while the API server is away, but not without the right to look", async () => {
    const cli = startCli([app()]);
    cli.setOutage(noAnswer("connection refused"));
    const { code, stdout } = await watch(cli, [], [() => cli.setOutage(undefined)]);
    expect([code, stdout]).toEqual([EXIT.ok, expect.stringContaining("VirtualApp ops/shop")]);
    const refused = startCli([app()]);
    refused.setOutage(new MeshError("COMMAND_FAILED", "forbidden"));
    expect(await refused.run("status", "-w")).toEqual({ code: EXIT.failed, stdout: "", stderr: "ctrlmesh: forbidden\n" });
  });

  it("waits for an app that is deleted while it is watched", async () => {
    const objects = [app()];
    const { code, stderr } = await watch(startCli(objects), ["shop"], [() => void objects.pop()]);
    expect([code, stderr]).toEqual([EXIT.ok, expect.stringContaining("there is no app shop in namespace ops")]);
  });

  it("says that there is no app", async () => {
    const { stdout, stderr } = await watch(startCli([]), [], [nothing]);
    expect([stdout, stderr]).toEqual(["", "there is no app in namespace ops; -A shows all namespaces\n"]);
  });
});

it.each<[object, Record<string, string>, object | undefined]>([
  [{ isTTY: true, rows: 50, columns: 100 }, {}, { rows: 50, columns: 100 }],
  [{ isTTY: true, rows: 0, columns: 0 }, { NO_COLOR: "" }, { rows: 24, columns: 80 }],
  [{ isTTY: true, rows: 50, columns: 100 }, { NO_COLOR: "1" }, undefined],
  [{ isTTY: true, rows: 50, columns: 100 }, { TERM: "dumb" }, undefined],
  [{}, {}, undefined],
])("the screen of stdout %j with %j is %j", (stream, env, screen) => {
  expect(screenOf(stream, env)()).toEqual(screen);
});
