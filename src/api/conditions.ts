// The status conditions of every kind (metav1.Condition), which `kubectl wait` reads.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { listMap } from "./extensions.ts";
import { textUpTo } from "./fields.ts";

/** RFC 3339, as Kubernetes writes times. */
export const timestampSchema = z.iso.datetime({ offset: true });

const conditionSchema = z.object({
  type: z.string().min(1).max(316).describe("Type of the condition, for example Ready."),
  status: z.enum(["True", "False", "Unknown"]).describe("Whether the condition is true."),
  observedGeneration: optional(z.int().min(0)).describe("Generation of the object that the condition is about."),
  lastTransitionTime: timestampSchema.describe("When the status last changed."),
  reason: z.string().min(1).max(1024).describe("The reason as one word in CamelCase, for programs."),
  message: textUpTo(32_768).describe("The reason as a sentence. For a problem, it includes the pod, the cause and the remedy."),
});

export const conditionsSchema = z.array(conditionSchema).max(16).meta(listMap("type"));

export type Condition = Immutable<z.output<typeof conditionSchema>>;
