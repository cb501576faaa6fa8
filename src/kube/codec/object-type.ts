// What an object says that it is, in either encoding. Pure.

/** runtime.TypeMeta. "" stands for a field that is not there. */
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

// The generic v1 List holds RawExtensions; the values of the metrics APIs have something else in ObjectMeta's place.
const LISTS_WITHOUT_METADATA: ReadonlySet<string> = new Set(["List", "MetricValueList", "ExternalMetricValueList"]);

/** True for a list of objects that can be told apart by their ObjectMeta. */
export function isListType({ kind }: ObjectType): boolean {
  return kind.endsWith("List") && !LISTS_WITHOUT_METADATA.has(kind);
}
