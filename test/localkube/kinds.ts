// The defaults and checks of the built-in kinds at creation, as far as clients notice them. A table of functions by storage key;
// each changes the draft in place. Pod specs get the common defaults only.
import { type Labels, matchesSelector } from "../../src/kube/label-selector.ts";
import { invalid } from "./failures.ts";
import { checkStringMap } from "./metadata.ts";
import { asArray, asObject, isObject, type StoredObject } from "./model/object.ts";
import { type ResourceType, storageKey } from "./model/registry.ts";

/** The next free address of the service range. */
export type AllocateAddress = () => string;

type Prepare = (draft: StoredObject, type: ResourceType, allocate: AllocateAddress) => void;

const PREPARE: Readonly<Record<string, Prepare>> = {
  "/namespaces": (draft) => {
    draft.metadata.labels = { ...draft.metadata.labels, "kubernetes.io/metadata.name": draft.metadata.name };
    draft.spec = { finalizers: ["kubernetes"] };
    draft.status = { phase: "Active" };
  },
  "/configmaps": (draft) => checkStringMap(draft.data, "data"),
  "/secrets": (draft) => {
    foldStringData(draft);
    draft.type ??= "Opaque";
  },
  "/pods": (draft, type) => {
    const spec = asObject(draft.spec);
    if (asArray(spec.containers).length === 0) {
      throw invalid(type, draft.metadata.name, [
        { reason: "FieldValueRequired", field: "spec.containers", message: "Required value" },
      ]);
    }
    draft.spec = { ...POD_DEFAULTS, ...spec };
    draft.status = { phase: "Pending", qosClass: "BestEffort" };
  },
  "/services": (draft, _type, allocate) => {
    const spec = asObject(draft.spec);
    const ports = asArray(spec.ports).map((port) =>
      isObject(port) ? { protocol: "TCP", targetPort: port.port, ...port } : port,
    );
    const headless = spec.type === "ExternalName";
    draft.spec = {
      type: "ClusterIP",
      sessionAffinity: "None",
      ...(headless ? {} : { clusterIP: spec.clusterIP ?? allocate() }),
      ...spec,
      ...(ports.length === 0 ? {} : { ports }),
    };
    draft.status = { loadBalancer: {} };
  },
  "apps/statefulsets": (draft, type) => {
    checkPodSelector(draft, type);
    draft.spec = { ...STATEFUL_SET_DEFAULTS, ...asObject(draft.spec) };
    draft.status = { replicas: 0, availableReplicas: 0 };
  },
};

const POD_DEFAULTS = {
  restartPolicy: "Always",
  terminationGracePeriodSeconds: 30,
  dnsPolicy: "ClusterFirst",
  serviceAccountName: "default",
  securityContext: {},
  schedulerName: "default-scheduler",
  enableServiceLinks: true,
};

const STATEFUL_SET_DEFAULTS = {
  replicas: 1,
  podManagementPolicy: "OrderedReady",
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  revisionHistoryLimit: 10,
  persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
};

/** Fills in and checks a new object. @throws StatusError */
export function prepareNew(draft: StoredObject, type: ResourceType, allocate: AllocateAddress): void {
  PREPARE[storageKey(type)]?.(draft, type, allocate);
}

/** Fills in and checks an update. @throws StatusError */
export function prepareUpdate(draft: StoredObject, existing: StoredObject, type: ResourceType): void {
  switch (storageKey(type)) {
    case "/configmaps":
      checkStringMap(draft.data, "data");
      return;
    case "/secrets":
      foldStringData(draft);
      draft.type ??= existing.type;
      return;
    case "/namespaces":
      draft.spec = existing.spec;
      draft.metadata.labels = { ...draft.metadata.labels, "kubernetes.io/metadata.name": draft.metadata.name };
      return;
    case "/services":
      draft.spec = {
        ...asObject(draft.spec),
        clusterIP: asObject(draft.spec).clusterIP ?? asObject(existing.spec).clusterIP,
      };
  }
}

function checkPodSelector({ metadata, spec }: StoredObject, type: ResourceType): void {
  const { selector, template } = asObject(spec);
  const { labels } = asObject(asObject(template).metadata);
  if (!isObject(selector) || Object.keys(selector).length === 0) {
    throw invalid(type, metadata.name, [{ reason: "FieldValueRequired", field: "spec.selector", message: "Required value" }]);
  }
  if (matchesSelector(selector, asObject(labels) as Labels)) return;
  const message = "Invalid value: `selector` does not match template `labels`";
  throw invalid(type, metadata.name, [{ reason: "FieldValueInvalid", field: "spec.template.metadata.labels", message }]);
}

function foldStringData(draft: StoredObject): void {
  checkStringMap(draft.data, "data");
  checkStringMap(draft.stringData, "stringData");
  const plain = Object.entries(asObject(draft.stringData)).map(([key, text]) => [
    key,
    Buffer.from(String(text)).toString("base64"),
  ]);
  delete draft.stringData;
  if (plain.length > 0) draft.data = { ...asObject(draft.data), ...Object.fromEntries(plain) };
}
