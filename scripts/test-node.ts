// `npm run test:node`: follows the guides on a real Kubernetes node, with the images from the Dockerfiles (test/real-node). Arguments go to vitest.
import { runOnNode } from "../test/real-node/run.ts";

process.exitCode = await runOnNode("npm run test:node", ["test/real-node/flows.test.ts", ...process.argv.slice(2)]);
