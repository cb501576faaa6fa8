// Gives a new pod of a StatefulSet the template of another revision. Pure. Invariant: fields that its own
// template does not contain stay, such as the volumes of the StatefulSet and the token that admission mounts.
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import { SERVICE_ACCOUNT_DIR } from "../injection/names.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface Template {
  readonly metadata?: { readonly labels?: Fields; readonly annotations?: Fields };
  readonly spec?: Fields;
}

/** @param from the template that the pod was made from */
export function withTemplate<P extends { readonly metadata: object; readonly spec: object }>(
  pod: P,
  from: Template,
  to: Template,
): P {
  const partOf = ({ metadata: { labels = {}, annotations = {} } = {}, spec = {} }: Template) => ({
    metadata: { labels, annotations },
    spec,
  });
  const merged = merge(pod, partOf(from), partOf(to)) as P;
  return { ...merged, spec: withTokens(merged.spec as Fields, pod.spec as Fields) };
}

/** The live value with the changes that lead from one template to the other. */
function merge(live: unknown, from: unknown, to: unknown): unknown {
  if (isDeepEqual(from, to)) return live;
  if (Array.isArray(live) && (Array.isArray(from) || Array.isArray(to))) return mergeLists(live, listOf(from), listOf(to));
  if (!isFields(live) || !isFields(from ?? {}) || !isFields(to ?? {})) return to;
  const [before, after] = [(from ?? {}) as Fields, (to ?? {}) as Fields];
  const keys = [...new Set([...Object.keys(live), ...Object.keys(after)])];
  const entries = keys.map((key) => [key, merge(live[key], before[key], after[key])] as const);
  const remaining = entries.filter(([, value]) => value !== undefined);
  return remaining.length === 0 && to === undefined ? undefined : Object.fromEntries(remaining);
}

// Containers, volumes and variables are matched by name, mounts by path, and all other items by equality.
function mergeLists(live: readonly unknown[], from: readonly unknown[], to: readonly unknown[]): unknown[] | undefined {
  const key = ["mountPath", "name"].find((each) => [live, from, to].every((list) => isListBy(list, each)));
  const isSame = (a: unknown, b: unknown) => (key === undefined ? isDeepEqual(a, b) : fieldOf(a, key) === fieldOf(b, key));
  const find = (list: readonly unknown[], item: unknown) => list.find((other) => isSame(other, item));
  const keptItems = to.map((item) => {
    const [own, before] = [find(live, item), find(from, item)];
    return own === undefined || before === undefined ? item : merge(own, before, item);
  });
  const added = live.filter((item) => find(from, item) === undefined && find(to, item) === undefined);
  const merged = [...keptItems, ...added];
  return merged.length === 0 ? undefined : merged;
}

// Admission has mounted the token only into the containers of the pod's own template.
function withTokens(spec: Fields, live: Fields): Fields {
  const token = containersOf(live)
    .flatMap(mountsOf)
    .find((mount) => fieldOf(mount, "mountPath") === SERVICE_ACCOUNT_DIR);
  if (token === undefined) return spec;
  const mountedNames = new Set(containersOf(live).map(({ name }) => name));
  const mounted = (container: Fields) =>
    mountedNames.has(container.name) || find(mountsOf(container))
      ? container
      : { ...container, volumeMounts: [...mountsOf(container), token] };
  const find = (mounts: readonly unknown[]) => mounts.some((mount) => fieldOf(mount, "mountPath") === SERVICE_ACCOUNT_DIR);
  const listed = ["initContainers", "containers"].filter((name) => Array.isArray(spec[name]));
  return { ...spec, ...Object.fromEntries(listed.map((name) => [name, (spec[name] as Fields[]).map(mounted)])) };
}

function containersOf({ initContainers = [], containers = [] }: Fields): Fields[] {
  return [...(initContainers as Fields[]), ...(containers as Fields[])];
}

const mountsOf = ({ volumeMounts }: Fields) => listOf(volumeMounts);

function isListBy(list: readonly unknown[], key: string): boolean {
  const values = list.map((item) => fieldOf(item, key));
  return values.every((value) => typeof value === "string") && new Set(values).size === values.length;
}

const fieldOf = (item: unknown, key: string) => (isFields(item) ? item[key] : undefined);

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
