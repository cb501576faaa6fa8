// The contract that localkube claims to keep, on what it is a copy of: the real API server with its controllers.
import { describeKubeContract } from "../integration/contract/contract.ts";
import { startKube } from "../support/kube.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("on the real control plane", () => {
  describeKubeContract("the Kubernetes API keeps the contract", async () => {
    const kube = await startKube({ controllerManager: true });
    // The cache of a second run does not reach back to the first resource version, as in any cluster that has lived a while.
    await kube.crash();
    await kube.restart();
    return kube;
  });
});
