// What a message calls a source object and its fields comes from the source kind (SourceWords). So no other code may name a kind or one of
// its fields in a string, or it would tell users of one kind about the fields of another.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ZodObject } from "zod";
import { shardingConfigKind } from "../src/api/sharding-config.ts";
import { virtualAppKind } from "../src/api/virtual-app.ts";

/** Files that belong to one kind, to policies (which have fields of the same names), or to the help of a flag. */
const OWN = /^(api|manager\/(virtual-app|sharding|rollout|policies)|manager\/config\.ts)/;

const KINDS = [virtualAppKind, shardingConfigKind];
const FIELDS = new Set(KINDS.flatMap(({ schema }) => Object.keys((schema.shape.spec as ZodObject).shape)));

test("outside of its own folder, no message names a source kind or a field of its spec", () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) =>
    /^(?!.*\.test\.ts$).*\.ts$/.test(file),
  );
  const found = files
    .filter((file) => !OWN.test(file))
    .flatMap((file) =>
      textsOf(file)
        .filter(namesSource)
        .map((text) => [file, text]),
    );
  expect(found).toEqual([]);
});

function namesSource(text: string): boolean {
  if (KINDS.some(({ kind }) => text.includes(kind))) return true;
  return [...text.matchAll(/\bspec\.(\w+)/g)].some(([, field = ""]) => FIELDS.has(field));
}

/** The string literals and templates of a file, without comments, imports and the code in templates. */
function textsOf(file: string): string[] {
  const code = readFileSync(`src/${file}`, "utf8").replaceAll(/^\s*(?:\/\/|\/?\*).*$|^import .*$| from ".*";$|\s\/\/ .*$/gm, "");
  return [...code.replaceAll(/\$\{[^}]*\}/g, "").matchAll(/"[^"\n]*"|'[^'\n]*'|`[^`]*`/g)].map(([text]) => text);
}
