// The demo's screen on a terminal and elsewhere.
import { expect, it } from "vitest";
import { createScreen } from "../../examples/demo/screen.ts";

const ESCAPE = "\x1b";

const table = (count: number) => [`team-a  v2  pod-0  ${count}`, "", "app  in sync"];

function screenOf(isTTY: boolean, env: NodeJS.ProcessEnv = { TERM: "xterm" }) {
  let text = "";
  const screen = createScreen({
    out: {
      isTTY,
      write: (more: string) => {
        text += more;
      },
    },
    env,
  });
  return { screen, text: () => text, rows: () => text.match(/team-a .*/g) ?? [] };
}

it("without a terminal the screen appends lines, and the table once, when it is complete", () => {
  const { screen, text, rows } = screenOf(false);
  screen.show(table(1));
  screen.say(["first"]);
  screen.show(table(2));
  expect(text()).toBe("first\n");
  screen.keepTable();
  screen.say(["second"]);
  expect(rows()).toHaveLength(1);
  expect(text()).not.toContain(ESCAPE);
  expect(text().endsWith("second\n")).toBe(true);
});

it("on a terminal the screen redraws the table in its place, and only when it differs", () => {
  const { screen, text, rows } = screenOf(true);
  screen.show(table(1));
  screen.show(table(1));
  expect(rows()).toHaveLength(1);
  const height = text().split("\n").length - 1;
  screen.show(table(2));
  expect(rows()).toHaveLength(2);
  expect(text()).toContain(`${ESCAPE}[${height}A${ESCAPE}[J`);
});

it("on a terminal new lines come above the table, and a complete table stays", () => {
  const { screen, text, rows } = screenOf(true);
  screen.show(table(1));
  screen.say(["a sentence"]);
  expect(rows()).toHaveLength(2);
  screen.keepTable();
  const before = text();
  screen.say(["the next step"]);
  expect(text()).toBe(`${before}the next step\n`);
});

it("the screen uses colours only on a terminal without NO_COLOR that is not dumb", () => {
  expect(screenOf(true).screen.paint("cyan", "x")).toContain(ESCAPE);
  expect(screenOf(true, { TERM: "xterm", NO_COLOR: "1" }).screen.paint("cyan", "x")).toBe("x");
  expect(screenOf(false).screen.paint("cyan", "x")).toBe("x");
  expect(screenOf(true, { TERM: "dumb" }).screen.isTerminal).toBe(false);
});
