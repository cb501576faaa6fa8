// The contract that localkube implements, checked on the real API server with its controllers.
import { describeKubeContract } from "../integration/contract/contract.ts";
import { startKube } from "../support/kube.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("on the real control plane", () => {
  describeKubeContract("the Kubernetes API fulfils the contract", async () => {
    const kube = await startKube({ controllerManager: true });
    // After a restart the watch cache does not contain the first resource versions, as in any older cluster.
    await kube.crash();
    await kube.restart();
    return kube;
  });
});
