// Reads the metadata of a JSON object: of an item, of a Table row's object or of a watch event's object.
// `meta` exists only if every decoder reads the same, even one that ignores case or takes the first of two
// equal keys.
//
// It stops at the end of the bytes and continues there when more arrive.
import { asBuffer, equalsAscii } from "../base/bytes.ts";
import { type ItemMeta, type ListPart, noLabels, type ReadOptions } from "../base/types.ts";
import { OPEN_BRACE, QUOTE } from "./scan.ts";
import { type KeyName, keyName, textOf } from "./string.ts";
import { endsEarly, walkerAt } from "./text.ts";
import type { JsonWalker } from "./walker.ts";

const OBJECT = keyName("object");
const METADATA = keyName("metadata");
const NAMESPACE = keyName("namespace");
const NAME = keyName("name");
const LABELS = keyName("labels");
const RESOURCE_VERSION = keyName("resourceVersion");

const NO_LABELS = noLabels();

// The levels, each inside the previous one.
const IN_ROW = 0;
const IN_OBJECT = 1;
const IN_METADATA = 2;
const IN_LABELS = 3;

/**
 * The role of the current value, which is read once all of it has arrived. `noLabels`: labels that are not an
 * object must be null.
 */
type Pending = "namespace" | "name" | "label" | "noLabels" | "version" | "noVersion";

/**
 * Reads one object at a time. The properties are those of the last one. The reader is reused, so that an item
 * allocates only its strings.
 */
export class JsonObjectReader {
  /** A key that is read occurs twice or in another case. */
  ambiguous = false;
  namespace = "";
  name = "";
  /**
   * The place of the name's string, with its quotes; 0 if there is no name. It is valid only over complete
   * text.
   */
  nameStart = 0;
  nameEnd = 0;
  readonly #walker: JsonWalker;
  readonly #readsLabels: boolean;
  readonly #readsVersions: boolean;
  readonly #onOther: (() => void) | undefined;
  #labels = NO_LABELS;
  #version = "";
  #readable = false;
  #root = IN_OBJECT;
  #level = IN_OBJECT;
  #pending: Pending | undefined;
  #objectSeen = false;
  #metadataSeen = false;
  #namespaceSeen = false;
  #nameSeen = false;
  #labelsSeen = false;
  #versionSeen = false;
  #label: string | undefined;
  #lastNamespace = "";

  /** @param onOther called for each other member of the object; by default they are skipped */
  constructor(walker: JsonWalker, { labels = false, versions = false }: ReadOptions = {}, onOther?: () => void) {
    this.#walker = walker;
    this.#readsLabels = labels;
    this.#readsVersions = versions;
    this.#onOther = onOther;
  }

  /** The metadata of the object, or undefined if it cannot be read with certainty. */
  get meta(): ItemMeta | undefined {
    if (!this.#readable || !this.#metadataSeen) return undefined;
    const { namespace, name } = this;
    const meta = this.#readsLabels ? { namespace, name, labels: this.#labels } : { namespace, name };
    return this.#readsVersions ? { ...meta, resourceVersion: this.#version } : meta;
  }

  /** Begins with the object, or the Table row, at which the walker is. */
  begin(part: ListPart): void {
    this.#readable = true;
    this.ambiguous = false;
    this.namespace = "";
    this.name = "";
    this.nameStart = 0;
    this.nameEnd = 0;
    this.#pending = undefined;
    this.#objectSeen = false;
    this.#metadataSeen = false;
    this.#namespaceSeen = false;
    this.#nameSeen = false;
    this.#labelsSeen = false;
    this.#versionSeen = false;
    this.#version = "";
    if (this.#readsLabels) this.#labels = noLabels();
    this.#root = part === "row" ? IN_ROW : IN_OBJECT;
    this.#level = this.#walker.enter(OPEN_BRACE) ? this.#root : this.#root - 1;
  }

  /** Continues reading. True once the walker is after the object, false if it needs more bytes. */
  read(): boolean {
    const walker = this.#walker;
    while (this.#level >= this.#root) {
      if (this.#pending !== undefined) {
        if (!walker.skip()) return false;
        this.#takeValue();
      }
      const token = walker.next();
      if (token === "more") return false;
      if (token === "closed") this.#level--;
      else this.#readMember();
    }
    return walker.skip();
  }

  /** Marks the object as unreadable. */
  refuse(): void {
    this.#readable = false;
  }

  #readMember(): void {
    const walker = this.#walker;
    switch (this.#level) {
      case IN_METADATA:
        this.#readMetaMember();
        return;
      case IN_OBJECT:
        if (this.#takes(METADATA, this.#metadataSeen)) this.#metadataSeen = this.#descend();
        else this.#onOther?.();
        return;
      case IN_ROW:
        if (this.#takes(OBJECT, this.#objectSeen)) this.#objectSeen = this.#descend();
        return;
      case IN_LABELS:
        this.#label = walker.keyText();
        this.#expectText("label");
    }
  }

  #readMetaMember(): void {
    if (this.#takes(NAMESPACE, this.#namespaceSeen)) {
      this.#namespaceSeen = true;
      this.#expectText("namespace");
    } else if (this.#takes(NAME, this.#nameSeen)) {
      this.#nameSeen = true;
      this.#expectText("name");
    } else if (this.#readsLabels && this.#takes(LABELS, this.#labelsSeen)) {
      this.#labelsSeen = true;
      if (this.#walker.enter(OPEN_BRACE)) this.#level++;
      else this.#pending = "noLabels";
    } else if (this.#readsVersions && this.#walker.matches(RESOURCE_VERSION) !== "no") {
      // The owner does not depend on the version, so an uncertain version only hides itself.
      if (this.#walker.valueByte === QUOTE) this.#pending = this.#versionSeen ? "noVersion" : "version";
      this.#versionSeen = true;
    }
  }

  // True for the first key of exactly this name. A second one or one in another case makes the object
  // unreadable.
  #takes(name: KeyName, seen: boolean): boolean {
    const match = this.#walker.matches(name);
    if (match === "no") return false;
    if (match === "exact" && !seen) return true;
    this.#readable = false;
    this.ambiguous = true;
    return false;
  }

  #descend(): true {
    if (this.#walker.enter(OPEN_BRACE)) this.#level++;
    else this.#readable = false;
    return true;
  }

  #expectText(field: Pending): void {
    if (this.#walker.valueByte === QUOTE) this.#pending = field;
    else this.#readable = false;
  }

  // Reads the value that has just been skipped.
  #takeValue(): void {
    const { bytes, valueStart, valueEnd } = this.#walker;
    switch (this.#pending) {
      case "namespace":
        this.namespace = this.#namespaceText(bytes, valueStart + 1, valueEnd - 1);
        break;
      case "name":
        this.nameStart = valueStart;
        this.nameEnd = valueEnd;
        this.name = this.#text(bytes, valueStart + 1, valueEnd - 1);
        break;
      case "version":
        this.#version = textOf(bytes, valueStart + 1, valueEnd - 1) ?? "";
        break;
      case "noVersion":
        this.#version = "";
        break;
      case "label":
        this.#takeLabel(this.#text(bytes, valueStart + 1, valueEnd - 1));
        break;
      default:
        if (!equalsAscii(bytes, valueStart, valueEnd, "null")) this.#readable = false;
    }
    this.#pending = undefined;
  }

  // Map keys that differ by case are different keys for every decoder. A repeated key is read differently.
  #takeLabel(value: string): void {
    const key = this.#label;
    if (key === undefined || key in this.#labels) this.#readable = false;
    else this.#labels[key] = value;
  }

  // Lists are sorted by namespace, so the next namespace is most often the same. A comparison is cheaper than
  // a new string.
  #namespaceText(bytes: Buffer, start: number, end: number): string {
    if (equalsAscii(bytes, start, end, this.#lastNamespace)) return this.#lastNamespace;
    const text = this.#text(bytes, start, end);
    // The same bytes with a backslash would be an escape.
    if (!text.includes("\\")) this.#lastNamespace = text;
    return text;
  }

  #text(bytes: Buffer, start: number, end: number): string {
    const text = textOf(bytes, start, end);
    if (text === undefined) this.#readable = false;
    return text ?? "";
  }
}

/** The metadata of one whole object, or undefined if it cannot be read with certainty. */
export function readObjectMeta(body: Uint8Array, options: ReadOptions): ItemMeta | undefined {
  const reader = new JsonObjectReader(walkerAt(asBuffer(body)), options);
  reader.begin("item");
  if (!reader.read()) throw endsEarly();
  return reader.meta;
}
