// The files that a node gives to a pod's containers besides its volumes, and their mounts.
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHostsFile, type HostsFile } from "./hosts-file.ts";
import type { Container, NodePod } from "./pod-types.ts";
import type { Bind } from "./sandbox.ts";
import type { TestImage } from "./test-image.ts";
import type { PodVolumes } from "./volumes.ts";

const FILES = ["hosts", "resolv.conf", "hostname"] as const;

/** Writes the files in /etc of the pod's containers. Names are resolved from hosts, which the caller updates. */
export function writePodFiles(dir: string, pod: NodePod, podIP: string): HostsFile {
  const { name, namespace } = pod.metadata;
  mkdirSync(dir, { recursive: true });
  // No server listens there, so a name that is not in the hosts file fails at once.
  const search = `${namespace}.svc.cluster.local svc.cluster.local cluster.local`;
  writeFileSync(join(dir, "resolv.conf"), `nameserver 127.0.0.1\nsearch ${search}\n`);
  writeFileSync(join(dir, "hostname"), `${pod.spec.hostname ?? name}\n`);
  return createHostsFile(join(dir, "hosts"), pod, podIP);
}

/** The mounts of a container: its image, the pod's files in `etcDir`, and its volumes. @throws Error if one is missing */
export function bindsOf({ volumeMounts = [] }: Container, image: TestImage, etcDir: string, volumes: PodVolumes): Bind[] {
  return [
    ...Object.entries(image.binds ?? {}).map(([target, source]) => bind(source, target, true)),
    ...FILES.map((file) => bind(join(etcDir, file), `/etc/${file}`, false)),
    ...volumeMounts.map(({ name, mountPath, readOnly = false, subPath }) => {
      const source = join(volumes.path(name), subPath ?? "");
      const isReadOnly = volumes.isReadOnly(name);
      if (!isReadOnly) mkdirSync(source, { recursive: true });
      // /var/run is a link, which could lead out of the unfinished root.
      return bind(source, mountPath.replace(/^\/var\/run\//, "/run/"), readOnly || isReadOnly);
    }),
  ];
}

function bind(source: string, target: string, readOnly: boolean): Bind {
  return { source, target, readOnly, isFolder: statSync(source).isDirectory() };
}
