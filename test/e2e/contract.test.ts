// The contract that localkube claims to keep, on what it is a copy of: the real API server with its controllers.
import { describeKubeContract } from "../integration/contract/contract.ts";
import { startKube } from "../support/kube.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("on the real control plane", () => {
  describeKubeContract("the Kubernetes API keeps the contract", () => startKube({ controllerManager: true }));
});
