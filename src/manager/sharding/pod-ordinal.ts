// The number that the name of a StatefulSet's pod ends with. Pure.

/** The ordinal of a pod of the StatefulSet; undefined for any other pod. */
export function ordinalOf(statefulSet: string, podName: string): number | undefined {
  const digits = podName.startsWith(`${statefulSet}-`) ? podName.slice(statefulSet.length + 1) : "";
  return /^(0|[1-9][0-9]{0,8})$/.test(digits) ? Number(digits) : undefined;
}
