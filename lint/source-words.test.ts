// What a message calls a source object and its fields comes from the source kind (SourceWords). So no other code may name a kind or one of
// its fields in a string, or it would tell users of one kind about the fields of another.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ZodObject } from "zod";
import { KINDS, type KindName } from "../src/api/crd.ts";
import { createSources } from "../src/manager/create-base.ts";

const SOURCE_FILES = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) =>
  /^manager\/.*-source\.ts$/.test(file),
);

/** Folders of one kind or of policies (which have fields of the same names), and the help of the flags. */
const OWN = ["api/", "manager/rollout/", "manager/policies/", "manager/config.ts", ...SOURCE_FILES.map(folderOf)];

const SOURCE_KINDS = createSources().map(({ words }) => KINDS[words.kind as KindName]);
const FIELDS = new Set(SOURCE_KINDS.flatMap(({ schema }) => Object.keys((schema.shape.spec as ZodObject).shape)));

test("outside of its own folder, no message names a source kind or a field of its spec", () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) =>
    /^(?!.*\.test\.ts$).*\.tsx?$/.test(file),
  );
  const found = files
    .filter((file) => !OWN.some((own) => file.startsWith(own)))
    .flatMap((file) =>
      textsOf(file)
        .filter(namesSource)
        .map((text) => [file, text]),
    );
  expect(found).toEqual([]);
});

function namesSource(text: string): boolean {
  if (SOURCE_KINDS.some(({ kind }) => text.includes(kind))) return true;
  return [...text.matchAll(/\bspec\.(\w+)/g)].some(([, field = ""]) => FIELDS.has(field));
}

/** The string literals and templates of a file, without comments, imports and the code in templates. */
function textsOf(file: string): string[] {
  const code = readFileSync(`src/${file}`, "utf8").replaceAll(/^\s*(?:\/\/|\/?\*).*$|^import .*$| from ".*";$|\s\/\/ .*$/gm, "");
  return [...code.replaceAll(/\$\{[^}]*\}/g, "").matchAll(/"[^"\n]*"|'[^'\n]*'|`[^`]*`/g)].map(([text]) => text);
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf("/") + 1);
}
