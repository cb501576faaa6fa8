// `npm run build`: bundles the programs into dist/, as the images contain them. `--out DIR` takes another folder, beside
// which the folder `proto` must be, as it is beside dist/. Types are not checked here: that is `npm run types`.
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundle, PROGRAMS } from "./build/bundle.ts";

const { values } = parseArgs({
  options: { out: { type: "string", default: fileURLToPath(new URL("../dist", import.meta.url)) } },
});
const out = resolve(values.out);
rmSync(out, { recursive: true, force: true }); // files of deleted sources must not ship
for (const program of PROGRAMS) await bundle(program, out);
