// Metrics for hot paths. prom-client hashes the labels at each `inc` and `observe`; here a label set is
// looked up once and becomes a cell: a number, or buckets, which are read at a scrape. Invariant: the caller
// keeps one cell for each label set and bounds their number.
import { Counter, Histogram, type Registry } from "./metrics.ts";

export interface MetricOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly L[];
  readonly registry: Registry;
}

type Labels = Readonly<Record<string, string | number>>;

/** One label set of a counter. */
export interface CounterCell {
  value: number;
}

/** Returns a function that creates cells. Call that function once for each label set. */
export function createCounterCells<L extends string>(
  options: MetricOptions<L>,
): (labels: Record<L, string | number>) => CounterCell {
  const cells: { readonly labels: Record<L, string | number>; readonly cell: CounterCell }[] = [];
  new Counter({
    ...configOf(options),
    collect() {
      this.reset();
      for (const { labels, cell } of cells) this.inc(labels, cell.value);
    },
  });
  return (labels) => {
    const cell: CounterCell = { value: 0 };
    cells.push({ labels, cell });
    return cell;
  };
}

/** Returns a function that creates cells of a histogram. @param options.buckets upper bounds, ascending */
export function createHistogramCells<L extends string>(
  options: MetricOptions<L> & { readonly buckets: readonly number[] },
): (labels: Record<L, string | number>) => Pick<BucketCell, "observe"> {
  const { name, help, buckets } = options;
  const cells: BucketCell[] = [];
  const histogram = new Histogram({ ...configOf(options), buckets: [...buckets] });
  // prom-client's registry and its own `get` call it. It is not in prom-client's declarations.
  const getForPromString = async (): Promise<object> => {
    const values = cells.flatMap((cell) => samplesOf(name, cell));
    return { name, help, type: "histogram", values, aggregator: "sum" };
  };
  Object.assign(histogram, { getForPromString });
  return (labels) => {
    const cell = new BucketCell(labels, buckets);
    cells.push(cell);
    return cell;
  };
}

function configOf<L extends string>({ name, help, labelNames = [], registry }: MetricOptions<L>) {
  return { name, help, labelNames: [...labelNames], registers: [registry] };
}

/** One label set of a histogram. */
class BucketCell {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  /** Not cumulative. The last count is for values above all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] ?? 0)) index++;
    counts[index] = (counts[index] ?? 0) + 1;
    this.sum += value;
  }
}

/** In the form of prom-client. */
function samplesOf(name: string, { labels: sharedLabels, bounds, counts, sum }: BucketCell): object[] {
  let count = 0;
  const buckets = [...counts].map((inBucket, index) => {
    count += inBucket;
    return { metricName: `${name}_bucket`, labels: { le: bounds[index] ?? "+Inf" }, sharedLabels, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
    { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
  ];
}
