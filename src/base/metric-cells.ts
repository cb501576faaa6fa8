// Metrics for hot paths. prom-client hashes the labels at each `inc` and `observe`; here a label set is
// looked up once and becomes a cell: a number, or buckets, which are read at a scrape. Invariant: the caller
// keeps one cell for each label set and bounds their number. Used for metrics that every request changes.
import { Counter, Histogram, type Registry } from "./metrics.ts";

export interface MetricOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly L[];
  readonly registry: Registry;
}

/** One label set of a counter. */
export interface CounterCell {
  value: number;
}

/** One label set of a histogram. */
export interface HistogramCell {
  observe(value: number): void;
}

/** Returns a function that creates cells. Call that function once for each label set. */
export function createCounterCells<L extends string>({
  name,
  help,
  labelNames = [],
  registry,
}: MetricOptions<L>): (labels: Record<L, string | number>) => CounterCell {
  const cells: { readonly labels: Record<L, string | number>; readonly cell: CounterCell }[] = [];
  new Counter({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
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

/**
 * The same for a histogram.
 * @param options.buckets upper bounds, ascending
 */
export function createHistogramCells<L extends string>({
  name,
  help,
  labelNames = [],
  registry,
  buckets,
}: MetricOptions<L> & { readonly buckets: readonly number[] }): (labels: Record<L, string | number>) => HistogramCell {
  const cells: BucketCell[] = [];
  new CellHistogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers: [registry] }, cells);
  return (labels) => {
    const cell = new BucketCell(labels, buckets);
    cells.push(cell);
    return cell;
  };
}

class BucketCell implements HistogramCell {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly bounds: readonly number[];
  /** Not cumulative. The last count is for values above all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(labels: Readonly<Record<string, string | number>>, bounds: readonly number[]) {
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

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly sharedLabels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

class CellHistogram extends Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #cells: readonly BucketCell[];

  constructor(options: ConstructorParameters<typeof Histogram>[0], cells: readonly BucketCell[]) {
    super(options);
    this.#name = options.name;
    this.#help = options.help;
    this.#cells = cells;
  }

  /** Called by prom-client's registry and its own `get`. It is not in prom-client's declarations. */
  async getForPromString(): Promise<object> {
    const values = this.#cells.flatMap((cell) => valuesOf(this.#name, cell));
    return { name: this.#name, help: this.#help, type: "histogram", values, aggregator: "sum" };
  }
}

function valuesOf(name: string, { labels: sharedLabels, bounds, counts, sum }: BucketCell): Sample[] {
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
