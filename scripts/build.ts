// `npm run build`: compiles src into dist/, without the tests, as the images carry it. `--out DIR` compiles elsewhere; the
// folder `proto` must lie beside it, as it lies beside dist/.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const TSC = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));

const { values } = parseArgs({ options: { out: { type: "string", default: resolve(ROOT, "dist") } } });
const out = resolve(values.out);
rmSync(out, { recursive: true, force: true }); // files of sources that are gone must not be shipped
const { status } = spawnSync(process.execPath, [TSC, "-p", resolve(ROOT, "tsconfig.build.json"), "--outDir", out], {
  stdio: "inherit",
});
process.exitCode = status ?? 1;
