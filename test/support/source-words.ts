// The words for messages of the kind VirtualApp, for tests that need no source object.
import { createVirtualAppSource } from "../../src/manager/virtual-app/virtual-app-source.ts";

export const VIRTUAL_APP_WORDS = createVirtualAppSource().words;
