// docs/reference/cli.md shows what the program prints.
import { expect, it } from "vitest";
import { EXIT } from "../../src/cli/frame/exit.ts";
import { COMMANDS } from "../../src/cli/run.ts";
import { movingApp, startCli } from "../support/cli.ts";
import { blocksOf, readDocument } from "../support/doc-blocks.ts";

const page = readDocument("docs/reference/cli.md");
const outputs = blocksOf(page).filter(({ info }) => info === "text");

it("shows the overview and the status as they are printed", async () => {
  const cli = startCli([movingApp()]);
  expect(outputs.map(({ text }) => text)).toEqual([(await cli.run("--help")).stdout, (await cli.run("status")).stdout]);
});

it("has a row for each exit code, and a word on each command", () => {
  const codes = [...page.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual(Object.values(EXIT));
  const headings = [...page.matchAll(/^## (.*)$/gm)].flatMap(([, names = ""]) => names.split(", "));
  expect(headings.sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
});
