// The JSON codec. Both codecs have the same functions.
export { createFrameEncoder, encodeBookmark, encodeErrorFrame, encodeStatus, readStatusMessage } from "./encode.ts";
export { createFrameSplitter, readFrame } from "./frame.ts";
export { createListFilter } from "./list-filter.ts";
export { readListMeta } from "./list-head.ts";
export { createListJoiner } from "./list-joiner.ts";
export { createElementCuts, frameCuts, objectCuts } from "./managed-fields.ts";
export { readObjectMeta } from "./object.ts";
export { renameElement, renameFrame, renameObject } from "./rename.ts";
