import { join } from "node:path";
import { expect, it } from "vitest";
import { importsOf } from "./imports-of.ts";
import { ROOT } from "./run-command.ts";

it("finds what a test imports, directly or not, and the programs that it starts by URL", () => {
  const imports = importsOf(join(ROOT, "test/nightly/kube.test.ts"));
  for (const path of [
    "test/nightly/kube.test.ts",
    "test/support/kube.ts",
    "test/support/kube-assets/args.ts",
    "src/kube/client/watch.ts",
  ])
    expect(imports).toContain(join(ROOT, path));
  expect(imports).not.toContain(join(ROOT, "src/manager/main.ts"));
});
