// The type of an object, in either encoding. Pure.

/** runtime.TypeMeta. "" stands for a missing field. */
export interface ObjectType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** True for metav1.Status. */
export function isStatusType({ apiVersion, kind }: ObjectType): boolean {
  return kind === "Status" && apiVersion === "v1";
}

/** True for metav1.Table, the form that kubectl prints. */
export function isTableType({ apiVersion, kind }: ObjectType): boolean {
  return kind === "Table" && apiVersion.startsWith("meta.k8s.io/");
}

// The generic v1 List holds RawExtensions. The values of the metrics APIs have another field in ObjectMeta's
// place.
const LISTS_WITHOUT_METADATA: ReadonlySet<string> = new Set(["List", "MetricValueList", "ExternalMetricValueList"]);

/** True for a list of objects with an ObjectMeta each. */
export function isListType({ kind }: ObjectType): boolean {
  return kind.endsWith("List") && !LISTS_WITHOUT_METADATA.has(kind);
}
