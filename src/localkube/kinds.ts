// The defaults and checks of the built-in kinds at creation, as far as clients notice them. A table of functions by storage key;
// each changes the draft in place. Pod specs get the common defaults only.
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
