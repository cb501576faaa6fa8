// Whether a cluster can get the mesh, before it is installed.
import { z } from "zod";
import { KRUISE_GROUP, KUSIONSTACK_GROUP } from "../../api/kind.ts";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../../kube/client/resources.ts";
import { readAnswer } from "../frame/read-answer.ts";
import { type Check, foundError } from "./check.ts";

/** As Chart.yaml (checks.test.ts). */
export const LEAST_MINOR = 30;

const REQUIREMENTS = "tasks/install.md#requirements";

/** Providers add to the minor version: "30+". */
const SERVER = z.object({ major: z.string().regex(/^\d/), minor: z.string().regex(/^\d/) });

export const SERVER_VERSION: Check = {
  name: "kubernetes",
  holds: `the API server is version 1.${LEAST_MINOR} or later`,
  async run({ cluster }) {
    const { major, minor } = readAnswer(SERVER, await cluster.read("/version"), "/version");
    const isOld = major === "1" && Number.parseInt(minor, 10) < LEAST_MINOR;
    if (!isOld) return [];
    return [foundError(`the API server is version ${major}.${minor}; it must be 1.${LEAST_MINOR} or later`, REQUIREMENTS)];
  },
};

/** What an installation creates. */
const CREATED = [
  ["customresourcedefinitions", "apiextensions.k8s.io"],
  ["clusterroles", "rbac.authorization.k8s.io"],
  ["clusterrolebindings", "rbac.authorization.k8s.io"],
  ["mutatingwebhookconfigurations", "admissionregistration.k8s.io"],
  ["validatingwebhookconfigurations", "admissionregistration.k8s.io"],
] as const;

export const RIGHTS: Check = {
  name: "rights",
  holds: "you may create what an installation creates",
  async run({ cluster }) {
    const asked = await Promise.all(
      CREATED.map(async ([resource, group]) => ({
        name: `${resource}.${group}`,
        may: await cluster.may("create", resource, group),
      })),
    );
    return asked
      .filter(({ may }) => !may)
      .map(({ name }) => foundError(`you may not create ${name}`, REQUIREMENTS, { next: `kubectl auth can-i create ${name}` }));
  },
};

export const OTHER_MESH: Check = {
  name: "other-mesh",
  holds: "no other program has installed the kinds of Controller Mesh",
  async run({ cluster }) {
    const all = await cluster.list(CUSTOM_RESOURCE_DEFINITIONS);
    const foreign = all.filter(({ metadata: { name = "", labels = {} } }) => {
      const group = name.slice(name.indexOf(".") + 1);
      return [KRUISE_GROUP, KUSIONSTACK_GROUP].includes(group) && labels["app.kubernetes.io/name"] !== "ctrlmesh";
    });
    const message = "belongs to another installation, of OpenKruise's or KusionStack's mesh for example";
    return foreign.map(({ metadata: { name = "" } }) =>
      foundError(message, "migration.md", {
        object: `CustomResourceDefinition ${name}`,
        next: `kubectl get crd ${name} --show-labels`,
      }),
    );
  },
};
