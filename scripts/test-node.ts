// `npm run test:node`: follows the guides on real Kubernetes nodes, with the images from the Dockerfiles (test/real-node). Arguments go to vitest.
import { buildEarlierMesh } from "../test/real-node/earlier-mesh.ts";
import { runOnNode } from "../test/real-node/run.ts";

const vitestArgs = ["test/real-node/flows.test.ts", ...process.argv.slice(2)];
process.exitCode = await runOnNode("npm run test:node", vitestArgs, buildEarlierMesh);
