// Fills a cluster quickly with ConfigMaps, for lists of 100,000: it writes them into etcd as kube-apiserver stores them, a
// hundred in each transaction. This takes a twentieth of the CPU time of kube-apiserver, which needs a millisecond for each. The
// watch cache handles these writes like any others. Without access to etcd it creates them by the API.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Client, credentials } from "@grpc/grpc-js";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { Kube } from "./kube.ts";
import { envelope, type Field, message } from "./kube-protobuf.ts";
import { CONFIG_MAP_DATA, createManyConfigMaps, type ManyOptions, nameOf } from "./many-config-maps.ts";

const PUTS_A_TRANSACTION = 100;
const TRANSACTIONS_AT_A_TIME = 4;
const FIELDS = '{"f:data":{".":{},"f:payload":{},"f:quoted":{}},"f:metadata":{"f:labels":{".":{},"f:mark":{}}}}';

/** The same objects as those of `createManyConfigMaps`. */
export async function seedConfigMaps(kube: Kube, client: KubeClient, options: ManyOptions): Promise<void> {
  const port = etcdPort(kube);
  if (port === undefined) return createManyConfigMaps(client, options);
  const etcd = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const commit = promisify<Buffer, Buffer>((request, done) => {
    const same = (bytes: Buffer) => bytes;
    etcd.makeUnaryRequest("/etcdserverpb.KV/Txn", same, same, request, (error, answer) => done(error, answer as Buffer));
  });
  let next = 0;
  const worker = async () => {
    for (let from = next; from < options.count; from = next) {
      next = Math.min(from + PUTS_A_TRANSACTION, options.count);
      await commit(message(puts(from, next, options.namespaces)));
    }
  };
  try {
    await Promise.all(Array.from({ length: TRANSACTIONS_AT_A_TIME }, worker));
  } finally {
    etcd.close();
  }
}

// etcdserverpb.TxnRequest: success = 2; RequestOp: request_put = 2; PutRequest: key = 1, value = 2.
function puts(from: number, to: number, namespaces: readonly string[]): Field[] {
  return Array.from({ length: to - from }, (_, offset): Field => {
    const namespace = namespaces[(from + offset) % namespaces.length] ?? "default";
    const name = nameOf(from + offset);
    const put: Field[] = [
      [1, `/registry/configmaps/${namespace}/${name}`],
      [2, stored(namespace, name)],
    ];
    return [2, [[2, put]]];
  });
}

// k8s.io.api.core.v1.ConfigMap, with the metadata that the API server would have filled in.
function stored(namespace: string, name: string): Buffer {
  const now: Field[] = [[1, Math.floor(Date.now() / 1000)]];
  const managed: Field[] = [
    [1, "ctrlmesh-test"],
    [2, "Update"],
    [3, "v1"],
    [4, now],
    [6, "FieldsV1"],
    [7, [[1, FIELDS]]],
  ];
  const metadata: Field[] = [
    [1, name],
    [3, namespace],
    [5, randomUUID()],
    [8, now],
    ...entries(11, { mark: `mark-of-${namespace}` }),
    [17, managed],
  ];
  return envelope("v1", "ConfigMap", [[1, metadata], ...entries(2, CONFIG_MAP_DATA)]);
}

function entries(number: number, map: Readonly<Record<string, string>>): Field[] {
  return Object.entries(map).map(([key, value]): Field => {
    const entry: Field[] = [
      [1, key],
      [2, value],
    ];
    return [number, entry];
  });
}

// test/kube writes its ports beside its kubeconfig. The programs of KUBEBUILDER_ASSETS do not.
function etcdPort(kube: Kube): number | undefined {
  try {
    const { etcd } = JSON.parse(readFileSync(join(dirname(kube.kubeconfig), "ports.json"), "utf8")) as { etcd?: number };
    return etcd;
  } catch {
    return undefined;
  }
}
