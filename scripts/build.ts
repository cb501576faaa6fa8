// `npm run build`: compiles src into dist/ without the tests, as the images contain it. `--out DIR` compiles to another folder,
// beside which the folder `proto` must be, as it is beside dist/.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const TSC = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));

const { values } = parseArgs({ options: { out: { type: "string", default: resolve(ROOT, "dist") } } });
const out = resolve(values.out);
rmSync(out, { recursive: true, force: true }); // files of deleted sources must not ship
const { status } = spawnSync(process.execPath, [TSC, "-p", resolve(ROOT, "tsconfig.build.json"), "--outDir", out], {
  stdio: "inherit",
});
process.exitCode = status ?? 1;
