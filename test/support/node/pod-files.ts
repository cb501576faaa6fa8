// The files that a node gives to a pod's containers beside its volumes, and where all of them are bound.
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHostsFile, type HostsFile } from "./hosts-file.ts";
import type { Container, NodePod } from "./pod-types.ts";
import type { Bind } from "./sandbox.ts";
import type { TestImage } from "./test-image.ts";
import type { PodVolumes } from "./volumes.ts";

const FILES = ["hosts", "resolv.conf", "hostname"] as const;

/** Writes what lies in /etc of the pod's containers. Names are found in hosts, which the caller keeps up to date. */
export function writePodFiles(dir: string, pod: NodePod, podIP: string): HostsFile {
  const { name, namespace } = pod.metadata;
  mkdirSync(dir, { recursive: true });
  // Nobody listens there: a name that is not in the hosts file fails at once.
  const search = `${namespace}.svc.cluster.local svc.cluster.local cluster.local`;
  writeFileSync(join(dir, "resolv.conf"), `nameserver 127.0.0.1\nsearch ${search}\n`);
  writeFileSync(join(dir, "hostname"), `${pod.spec.hostname ?? name}\n`);
  return createHostsFile(join(dir, "hosts"), pod, podIP);
}

/** What a container sees of its image, of the pod's files in `etcDir`, and of its volumes. @throws Error if one is not there */
export function bindsOf({ volumeMounts = [] }: Container, image: TestImage, etcDir: string, volumes: PodVolumes): Bind[] {
  return [
    ...Object.entries(image.binds ?? {}).map(([target, source]) => bind(source, target, true)),
    ...FILES.map((file) => bind(join(etcDir, file), `/etc/${file}`, false)),
    ...volumeMounts.map(({ name, mountPath, readOnly = false, subPath }) => {
      const source = join(volumes.path(name), subPath ?? "");
      const isReadOnly = volumes.isReadOnly(name);
      if (!isReadOnly) mkdirSync(source, { recursive: true });
      // /var/run is a link, which would lead out of a root that is not yet the container's.
      return bind(source, mountPath.replace(/^\/var\/run\//, "/run/"), readOnly || isReadOnly);
    }),
  ];
}

function bind(source: string, target: string, readOnly: boolean): Bind {
  return { source, target, readOnly, isFolder: statSync(source).isDirectory() };
}
