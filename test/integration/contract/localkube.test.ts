import { createLocalKube } from "../../localkube/localkube.ts";
import { describeKubeContract } from "./contract.ts";

describeKubeContract("localkube fulfils the contract of the Kubernetes API", async () => {
  const kube = createLocalKube({ bookmarkMs: 1000 });
  await kube.start(new AbortController().signal);
  return { server: kube.url, caPem: kube.caPem, token: kube.token, stop: () => kube.stop() };
});
