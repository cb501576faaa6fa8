// Stands for the API server during the warm-up: a server on the loopback that has one object and one list.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { JSON_TYPE } from "../../kube/media-types.ts";
import type { TlsPair } from "../identity/tls-pair.ts";

export interface StandIn {
  readonly url: string;
  close(): void;
}

export const OBJECT_PATH = "/api/v1/namespaces/own-0/configmaps/object-0";
export const LIST_PATH = "/api/v1/configmaps";
/** Of the list. Few enough that the proxy sends one list (mesh/ownership/plan-lists.ts). */
const OBJECTS = 300;
/** With it an object has an ordinary size, 1 KB. */
const TEXT = "a line of an ordinary length\n".repeat(28);
/** Objects of one namespace, one after the other: a real list is sorted by namespace. */
const OBJECTS_IN_A_ROW = 10;
const HOST = "127.0.0.1";

/** @param namespaces the list has objects in each */
export async function startStandIn(pair: TlsPair, namespaces: readonly string[]): Promise<StandIn> {
  const answers = new Map([
    ["/api/v1", JSON.stringify(resourceList())],
    [LIST_PATH, JSON.stringify(listOf(namespaces))],
    [OBJECT_PATH, JSON.stringify(configMap("own-0", "object-0"))],
  ]);
  const server = createServer({ ...pair, ALPNProtocols: ["http/1.1"] }, ({ url = "" }, res) => {
    const body = answers.get(url.split("?", 1)[0] ?? url) ?? "";
    res.writeHead(body === "" ? 404 : 200, { "content-type": JSON_TYPE, "content-length": body.length }).end(body);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, HOST, resolve));
  return {
    url: `https://${HOST}:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function resourceList(): object {
  const configMaps = { name: "configmaps", kind: "ConfigMap", namespaced: true, verbs: ["get", "list"] };
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion: "v1", resources: [configMaps] };
}

function listOf(namespaces: readonly string[]): object {
  const items = Array.from({ length: OBJECTS }, (_, index) => {
    const namespace = namespaces[Math.floor(index / OBJECTS_IN_A_ROW) % namespaces.length] ?? "";
    return configMap(namespace, `object-${index}`);
  });
  return { kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items };
}

function configMap(namespace: string, name: string): object {
  const metadata = { namespace, name, uid: "11111111-2222-3333-4444-555555555555", resourceVersion: "1" };
  return { kind: "ConfigMap", apiVersion: "v1", metadata, data: { text: TEXT } };
}
