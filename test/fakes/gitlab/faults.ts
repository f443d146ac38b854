/** What goes wrong, in this order: delay, lost request, status, then (after the handling) lost answer or cut body. */
export interface Fault {
  /** Any method when left out. */
  readonly method?: string;
  /** Matched against path and query below `/api/v4/`, still encoded. */
  readonly path: RegExp;
  /** How many requests are hit; default 1, `Infinity` for all. */
  readonly times?: number;
  /** Requests that match but pass before the first is hit. */
  readonly skip?: number;
  readonly delayMs?: number;
  /** Answered instead of handling the request. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The connection closes and nothing has happened. */
  readonly dropBeforeHandling?: boolean;
  /** The write has happened, its answer never arrives. */
  readonly dropAfterHandling?: boolean;
  /** Half of the body arrives. */
  readonly closeMidBody?: boolean;
}

export class Faults {
  readonly #active: { readonly fault: Fault; left: number; skip: number }[] = [];

  add(fault: Fault): void {
    this.#active.push({ fault, left: fault.times ?? 1, skip: fault.skip ?? 0 });
  }

  clear(): void {
    this.#active.length = 0;
  }

  /** The fault that hits this request, if any; counts it. */
  take(method: string, path: string): Fault | undefined {
    for (const one of this.#active) {
      if (one.left <= 0 || (one.fault.method ?? method) !== method || !one.fault.path.test(path)) continue;
      if (one.skip > 0) {
        one.skip -= 1;
        continue;
      }
      one.left -= 1;
      return one.fault;
    }
    return undefined;
  }
}
