import { expect, it } from "vitest";
import { plainText, plainTexts } from "./plain-text.ts";

it.each([
  ["no rule allows it", "no rule allows it"],
  ["a\nb\r\tc\u0000\u001b[31m\u0085\u2028\u2029", "a b  c  [31m   "],
  ["\u202etxt.exe\u200b", " txt.exe "],
  ["müde 🦊", "müde 🦊"],
])("%j becomes %j", (text, plain) => expect(plainText(text, 100)).toBe(plain));

it("plain text is bounded, and never ends in half a character", () => {
  expect(plainText("r".repeat(60_000), 256)).toHaveLength(256);
  expect(plainText("ab🦊", 4)).toBe("ab🦊");
  expect(plainText("ab🦊c", 4)).toBe("ab\ufffd…");
});

it("of many texts the first ones are shown, and how many more there are", () => {
  expect(plainTexts(["a\nb", "c"])).toEqual(["a b", "c"]);
  const shown = plainTexts(Array.from({ length: 40 }, (_, index) => `${index} ${"x".repeat(1_000)}`));
  expect([shown.length, shown.at(-1)]).toEqual([11, "and 30 more"]);
  expect(Math.max(...shown.map((text) => text.length))).toBe(512);
});
