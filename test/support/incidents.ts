// Five incidents of an app on a real API server, as people on call meet them. Each begins from a mesh in which nothing is wrong.
import { execFile } from "node:child_process";
import { stringify } from "yaml";
import { demoVirtualApp } from "./demo-app.ts";
import { kubectl } from "./kubectl.ts";
import type { Mesh, MeshPod } from "./mesh.ts";
import { suspend } from "./suspend.ts";

export interface Incident {
  readonly name: string;
  /** Ends what the incident has started on this machine. */
  begin(of: IncidentWorld): Promise<() => Promise<void>>;
}

export interface IncidentWorld {
  readonly mesh: Mesh;
  readonly main: MeshPod;
  readonly canary: MeshPod;
}

export const APP = { namespace: "foo-system", name: "foo-operator" };

const nothingToEnd = async () => undefined;

/** A sidecar does not answer any more, as on a node that is out of memory, and a namespace of its pod is to move. */
const STUCK_DRAIN: Incident = {
  name: "stuck drain",
  async begin({ mesh, main }) {
    const resume = suspend(main.proxy.pid);
    await mesh.labelNamespace("team-a", { "ns-type": "canary-1" });
    return async () => {
      resume();
      await mesh.labelNamespace("team-a", { "ns-type": null });
    };
  },
};

/** Somebody has started a pod of the operator that was not injected, and a namespace is to move. */
const BARE_POD: Incident = {
  name: "bare pod",
  async begin({ mesh }) {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "foo-debug", namespace: APP.namespace, labels: { component: APP.name } },
      spec: { containers: [{ name: "operator", image: "example.invalid/foo-operator" }], serviceAccountName: "foo-operator" },
    };
    await mesh.apply(stringify(pod));
    const running = JSON.stringify({ status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } });
    const patch = ["patch", "pod", "foo-debug", "-n", APP.namespace, "--subresource=status", "--type=merge", "-p", running];
    await kubectl(mesh.kube.kubeconfig, patch);
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    return async () => mesh.labelNamespace("team-b", { "ns-type": null });
  },
};

/** The operator's rights are pinned to the lock's own name, so the canary never leads. */
const LOCK_FORBIDDEN: Incident = {
  name: "lock forbidden",
  async begin({ mesh, canary }) {
    const rule = {
      apiGroups: ["demo.ctrlmesh.io"],
      resources: ["foos", "foos/status"],
      verbs: ["get", "list", "watch", "update", "patch"],
    };
    await kubectl(mesh.kube.kubeconfig, [
      "patch",
      "clusterrole",
      APP.name,
      "--type=merge",
      "-p",
      JSON.stringify({ rules: [rule] }),
    ]);
    let isOver = false;
    const lead = () =>
      execFile("kubectl", ["--kubeconfig", canary.kubeconfig, "get", "lease", APP.name, "-n", APP.namespace], () => {
        if (!isOver) setTimeout(lead, 1_000);
      });
    lead();
    return async () => {
      isOver = true;
    };
  },
};

/** The operator has deleted too much, and a breaker has opened. */
const BREAKER_OPEN: Incident = {
  name: "breaker open",
  async begin({ mesh, main }) {
    const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["delete"], namespaces: ["*"] };
    const limit = {
      name: "deletes",
      resourceRules: [rule],
      bucket: { burst: 2, interval: "1h", limit: 2 },
      triggerPolicy: "Normal",
      recoverPolicy: { type: "Manual" },
    };
    const spec = { selector: { matchLabels: { component: APP.name } }, rateLimitings: [limit] };
    const metadata = { name: "guard", namespace: APP.namespace };
    await mesh.apply(stringify({ apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "CircuitBreaker", metadata, spec }));
    for (let at = 0; at < 60; at++) {
      const args = ["--kubeconfig", main.adminKubeconfig, "delete", "configmap", `gone-${at}`, "-n", "team-b"];
      const said = await new Promise<string>((resolve) => execFile("kubectl", args, (_error, _out, stderr) => resolve(stderr)));
      if (said.includes("breaker") || said.includes("refused by CircuitBreaker")) break;
    }
    return nothingToEnd;
  },
};

/** An edit of the expression has a mistake, so the canary's namespace belongs to the default subset. */
const WRONG_REGEX: Incident = {
  name: "wrong regex",
  async begin({ mesh }) {
    await mesh.apply(demoVirtualApp().replace("^canary", "^canray"));
    return nothingToEnd;
  },
};

export const INCIDENTS: readonly Incident[] = [STUCK_DRAIN, BARE_POD, LOCK_FORBIDDEN, BREAKER_OPEN, WRONG_REGEX];
