// Finds `metadata.managedFields` in JSON text. It cuts only that member of the object's own metadata. Keys
// are compared as sigs.k8s.io/json does: with escapes resolved, and only in the same case.
import type { Edit } from "../base/bytes.ts";
import { isTableType, type ListPart } from "../base/types.ts";
import { type KeyName, keyName } from "./string.ts";
import { cutMembers, forEachElement, forEachMember, goToMember, readText, walkerAt } from "./text.ts";
import { JsonWalker } from "./walker.ts";

const METADATA = keyName("metadata");
const MANAGED_FIELDS = keyName("managedFields");
const OBJECT = keyName("object");
const ITEMS = keyName("items");
const ROWS = keyName("rows");
const KIND = keyName("kind");
const API_VERSION = keyName("apiVersion");

export function objectCuts(bytes: Buffer): readonly Edit[] {
  return documentCuts(walkerAt(bytes));
}

export function frameCuts(bytes: Buffer): readonly Edit[] {
  return memberCuts(walkerAt(bytes), OBJECT, documentCuts);
}

/** Finds the cuts in an item of a list, or in a Table's row. It reads no further than the metadata. */
export function createElementCuts(): (element: Buffer, part: ListPart) => readonly Edit[] {
  const walker = new JsonWalker();
  return (element, part) => {
    walker.start(element, 0, element.length).next();
    if (part === "row" && !goToMember(walker, OBJECT)) return [];
    return goToMember(walker, METADATA) ? metadataCuts(walker) : [];
  };
}

// The kind decides which cuts are made. In a list of custom resources it comes after the items.
function documentCuts(walker: JsonWalker): Edit[] {
  const found: { readonly part: "object" | ListPart; readonly cuts: Edit[] }[] = [];
  let kind = "";
  let apiVersion = "";
  forEachMember(walker, () => {
    if (isKey(walker, METADATA)) found.push({ part: "object", cuts: metadataCuts(walker) });
    else if (isKey(walker, ITEMS)) found.push({ part: "item", cuts: arrayCuts(walker, "item") });
    else if (isKey(walker, ROWS)) found.push({ part: "row", cuts: arrayCuts(walker, "row") });
    else if (isKey(walker, KIND)) kind = readText(walker) ?? "";
    else if (isKey(walker, API_VERSION)) apiVersion = readText(walker) ?? "";
  });
  const isTable = isTableType({ apiVersion, kind });
  const isList = !isTable && kind.endsWith("List");
  const isCutMade = { object: true, item: isList, row: isTable };
  return found.flatMap(({ part, cuts }) => (isCutMade[part] ? cuts : []));
}

function arrayCuts(walker: JsonWalker, part: ListPart): Edit[] {
  const cuts: Edit[] = [];
  forEachElement(walker, () => {
    const found = part === "row" ? memberCuts(walker, OBJECT, cutsInObject) : cutsInObject(walker);
    cuts.push(...found);
  });
  return cuts;
}

function cutsInObject(walker: JsonWalker): Edit[] {
  return memberCuts(walker, METADATA, metadataCuts);
}

function metadataCuts(walker: JsonWalker): Edit[] {
  return cutMembers(walker, () => isKey(walker, MANAGED_FIELDS));
}

function memberCuts(walker: JsonWalker, name: KeyName, cutsOf: (walker: JsonWalker) => Edit[]): Edit[] {
  const cuts: Edit[] = [];
  forEachMember(walker, () => {
    if (isKey(walker, name)) cuts.push(...cutsOf(walker));
  });
  return cuts;
}

function isKey(walker: JsonWalker, name: KeyName): boolean {
  return walker.matches(name) === "exact";
}
