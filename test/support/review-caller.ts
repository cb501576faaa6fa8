// Who sends a review, for tests that do not depend on it.
import type { Caller } from "../../src/manager/admission/server/webhook.ts";

export const CALLER: Caller = { address: "10.0.0.9", signal: new AbortController().signal };
