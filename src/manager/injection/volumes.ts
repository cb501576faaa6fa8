// The volumes of the proxy and of kubeconfig mode. All of the API server's defaults are written out, so a
// second injection of a stored pod changes nothing.

import type { InterceptMode } from "../../api/annotations.ts";
import { CA_CONFIG_MAP } from "../facts/injected-pod.ts";
import { TOKEN_AUDIENCE } from "../identity/token-reviewer.ts";
import { CLUSTER_CA_CONFIG_MAP, CLUSTER_CA_VOLUME, DATA_VOLUME, IDENTITY_VOLUME, KUBECONFIG_VOLUME } from "./names.ts";
import type { Volume } from "./pod-manifest.ts";

const FILE_MODE = 0o644;
const TOKEN_SECONDS = 3600;

/** The volumes of a mode, in the order in which they are added. */
export function ourVolumes(mode: InterceptMode): Volume[] {
  const identity: Volume = {
    name: IDENTITY_VOLUME,
    projected: {
      defaultMode: FILE_MODE,
      sources: [
        { serviceAccountToken: { audience: TOKEN_AUDIENCE, expirationSeconds: TOKEN_SECONDS, path: "token" } },
        { configMap: { name: CA_CONFIG_MAP, items: [{ key: "mesh.crt", path: "mesh.crt" }] } },
      ],
    },
  };
  const data: Volume = { name: DATA_VOLUME, emptyDir: { medium: "Memory", sizeLimit: "32Mi" } };
  return [
    identity,
    data,
    configMapVolume(CLUSTER_CA_VOLUME, CLUSTER_CA_CONFIG_MAP, "ca.crt"),
    ...(mode === "kubeconfig" ? [configMapVolume(KUBECONFIG_VOLUME, CA_CONFIG_MAP, "kubeconfig")] : []),
  ];
}

function configMapVolume(name: string, configMap: string, key: string): Volume {
  return { name, configMap: { name: configMap, defaultMode: FILE_MODE, items: [{ key, path: key }] } };
}
