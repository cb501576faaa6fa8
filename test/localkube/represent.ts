// The form of objects, lists and events in an answer: in the version of the request, as whole objects, as metadata only, or as
// rows of a Table (meta.k8s.io). The cells come from the kind's columns. Pure.

import type { Negotiated } from "./content.ts";
import type { ListResult } from "./list.ts";
import { type Column, cellOf } from "./model/columns.ts";
import type { StoredObject } from "./model/object.ts";
import { apiVersionOf, type ResourceType } from "./model/registry.ts";
import type { WatchEvent } from "./watch.ts";

/** The form that a request asks for. */
export interface Representation {
  readonly type: ResourceType;
  readonly negotiated: Negotiated;
  /** includeObject of a Table. */
  readonly includeObject: string;
  /** Wall time in milliseconds, for ages. */
  readonly now: number;
}

const NAME: Column = { name: "Name", type: "string", format: "name", jsonPath: ".metadata.name", priority: 0 };
const AGE: Column = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", priority: 0 };

export function representObject(object: StoredObject, how: Representation): unknown {
  const shown = inVersion(object, how.type);
  if (how.negotiated.form === "metadata") return partial(shown, how);
  if (how.negotiated.form === "table") return table([shown], { resourceVersion: shown.metadata.resourceVersion }, how, true);
  return shown;
}

export function representList({ items, metadata }: ListResult, how: Representation): unknown {
  const { form, version } = how.negotiated;
  const shown = items.map((item) => inVersion(item, how.type));
  if (form === "table") return table(shown, metadata, how, true);
  if (form === "metadata") {
    return {
      kind: "PartialObjectMetadataList",
      apiVersion: `meta.k8s.io/${version}`,
      metadata,
      items: shown.map((item) => partial(item, how)),
    };
  }
  return { kind: how.type.listKind, apiVersion: apiVersionOf(how.type), metadata, items: shown };
}

/** @param withHeaders true for the first event of a Table watch, which has the column definitions */
export function representEvent(event: WatchEvent, how: Representation, withHeaders: boolean): unknown {
  if (event.type === "ERROR") return event;
  if (event.type === "BOOKMARK") return { type: event.type, object: bookmark(event, how, withHeaders) };
  const { form } = how.negotiated;
  const shown = inVersion(event.object, how.type);
  const object =
    form === "table"
      ? table([shown], { resourceVersion: shown.metadata.resourceVersion }, how, withHeaders)
      : form === "metadata"
        ? partial(shown, how)
        : shown;
  return { type: event.type, object };
}

function bookmark(
  { version, initialEventsEnd }: WatchEvent & { type: "BOOKMARK" },
  how: Representation,
  withHeaders: boolean,
): unknown {
  const metadata = {
    resourceVersion: String(version),
    creationTimestamp: null,
    ...(initialEventsEnd ? { annotations: { "k8s.io/initial-events-end": "true" } } : {}),
  };
  const object = { kind: how.type.kind, apiVersion: apiVersionOf(how.type), metadata };
  const { form, version: metaVersion } = how.negotiated;
  if (form === "metadata") return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${metaVersion}`, metadata };
  if (form === "object") return object;
  // The row of a bookmark has the annotation, since a Table has none.
  return tableOf([{ cells: [], object }], { resourceVersion: String(version) }, how, withHeaders);
}

function inVersion(object: StoredObject, type: ResourceType): StoredObject {
  const apiVersion = apiVersionOf(type);
  return object.apiVersion === apiVersion && object.kind === type.kind ? object : { ...object, apiVersion, kind: type.kind };
}

function partial(object: StoredObject, { negotiated }: Representation): unknown {
  return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${negotiated.version}`, metadata: object.metadata };
}

function table(items: readonly StoredObject[], metadata: object, how: Representation, withHeaders: boolean): unknown {
  const rows = items.map((item) => ({
    cells: columnsOf(how.type).map((column) =>
      column.type === "date" ? ageCell(cellOf(item, column), how.type.custom, how.now) : cellOf(item, column),
    ),
    ...(how.includeObject === "None" ? {} : { object: how.includeObject === "Object" ? item : partial(item, how) }),
  }));
  return tableOf(rows, metadata, how, withHeaders);
}

function tableOf(rows: readonly object[], metadata: object, how: Representation, withHeaders: boolean): unknown {
  const columnDefinitions = withHeaders
    ? columnsOf(how.type).map(({ name, type, format = "", description = "", priority = 0 }) => ({
        name,
        type: cellType(type),
        format,
        description,
        priority,
      }))
    : null;
  return { kind: "Table", apiVersion: `meta.k8s.io/${how.negotiated.version}`, metadata, columnDefinitions, rows };
}

function columnsOf(type: ResourceType): readonly Column[] {
  if (!type.custom) return [NAME, ...type.columns, ...(type.columns.some((column) => column.type === "date") ? [] : [AGE])];
  return [NAME, ...(type.columns.length > 0 ? type.columns : [AGE])];
}

// Ages are text.
function cellType(type: string): string {
  return type === "date" ? "string" : type;
}

function ageCell(value: unknown, custom: boolean, now: number): unknown {
  if (typeof value !== "string") return custom ? null : "<unknown>";
  return formatAge(now - Date.parse(value));
}

/** A duration as kubectl writes it: 5s, 3m20s, 4h, 2d3h, 40d. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return `${minutes}m${seconds % 60 === 0 ? "" : `${seconds % 60}s`}`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return `${hours}h${minutes % 60 === 0 ? "" : `${minutes % 60}m`}`;
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  return days < 8 && hours % 24 !== 0 ? `${days}d${hours % 24}h` : `${days}d`;
}
