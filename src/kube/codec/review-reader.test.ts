import { expect, it } from "vitest";
import { createReviewReader } from "./review-reader.ts";

const labelsOf = (count: number, chars: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`label-${at}`, "x".repeat(chars)]));

function read(labels: object) {
  const request = {
    uid: "u",
    operation: "UPDATE",
    resource: { group: "", version: "v1", resource: "pods" },
    object: { metadata: { labels } },
    oldObject: { metadata: { labels } },
  };
  const reader = createReviewReader();
  reader.scan(Buffer.from(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request })));
  return reader;
}

it("reads two objects with hundreds of ordinary labels", () => {
  const labels = labelsOf(200, 63);
  expect(read(labels).subject).toMatchObject({ labels, oldLabels: labels });
});

it("counts the text of labels in what it keeps", () => {
  expect(read(labelsOf(20, 1_000)).heldBytes).toBeGreaterThan(2 * 2 * 20 * 1_000);
});

it("refuses labels that together have more text than any object, and keeps little of them", () => {
  expect(() => read(labelsOf(900, 1_000))).toThrow("all names and labels have more than 65536 characters");
});
