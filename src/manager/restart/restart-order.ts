// In which order the pods of an app are restarted. Pure.
import type { RestartPod } from "./restart-pods.ts";

/**
 * One subset after the other, the one that was begun first, else by the spec's order. In a subset those that do not lead before
 * those that do, so that the lock changes hands once; then what is not ready before what is; then by name.
 */
export function orderPods(
  pods: readonly RestartPod[],
  subsets: readonly string[],
  begun: string | undefined,
): readonly RestartPod[] {
  // A subset that the spec knows no more comes before all that it knows.
  const rank = ({ subset }: RestartPod) => (subset === begun ? Number.NEGATIVE_INFINITY : subsets.indexOf(subset));
  return pods.toSorted(
    (a, b) =>
      (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) ||
      Number(a.leader) - Number(b.leader) ||
      Number(a.ready) - Number(b.ready) ||
      (a.name < b.name ? -1 : 1),
  );
}
