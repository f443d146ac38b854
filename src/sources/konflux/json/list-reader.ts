import { Capture, type Captured } from './capture.ts';
import { stringAt } from './string-at.ts';
import { isSpace, JsonError, shown, ValueScanner } from './value-scanner.ts';

export type { Captured } from './capture.ts';
export { JsonError } from './value-scanner.ts';

export interface ListEnd {
  /** `metadata.continue`, wherever it stood; absent on the last page. */
  readonly continueToken?: string;
  /** Items that were too large to be held, and were left out. */
  readonly oversized: number;
}

export interface ListReaderOptions {
  /** Of one item. Default 8 MiB: etcd keeps objects of 1.5 MiB, and escapes can multiply that. */
  readonly maxItemBytes?: number;
}

/**
 * A Kubernetes list (`{…, "metadata": {"continue": …}, "items": [ … ]}`, in any order) from bytes in pieces of any
 * size: one item is in memory at a time, whatever the size of the list. As strict as JSON.parse.
 */
export class ListReader {
  readonly #scanner = new ValueScanner();
  readonly #capture: Capture;
  #state: State = 'Start';
  #name = '';
  #hasItems = false;
  #continueToken: string | undefined;
  #oversized = 0;
  /** Bytes before the current chunk, for messages. */
  #offset = 0;

  constructor({ maxItemBytes = 8 * 1024 * 1024 }: ListReaderOptions = {}) {
    this.#capture = new Capture(maxItemBytes);
  }

  /**
   * The items that end within these bytes, which must not change until then. Throws JsonError with the place of what is
   * no JSON; the items before it have been handed out.
   */
  *push(chunk: Uint8Array): Generator<Captured, void> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === 'Item' || this.#state === 'Name' || this.#state === 'Value') {
        const end = this.#scan(chunk, at);
        const whole = end === -1 ? chunk.length : end;
        // A huge value is read to its end and not kept.
        this.#capture.add(chunk, at, whole);
        at = whole;
        if (end === -1) continue;
        const item = this.#captured();
        if (item !== undefined) yield item;
        continue;
      }
      const byte = chunk[at] ?? 0;
      if (isSpace(byte) || this.#step(byte, at)) at += 1;
    }
    this.#offset += chunk.length;
  }

  /** After the last chunk. Throws JsonError when the list is not complete, or was none. */
  end(): ListEnd {
    if (this.#state === 'Start') throw new JsonError('it is empty');
    if (this.#state !== 'End') throw new JsonError(`it ends in the middle, after ${this.#offset} bytes`);
    if (!this.#hasItems) throw new JsonError('it is JSON, but no list: it has no items');
    return {
      oversized: this.#oversized,
      ...(this.#continueToken ? { continueToken: this.#continueToken } : {}),
    };
  }

  /** One byte between values. False: it is the first of a value, and is read again as such. */
  #step(byte: number, at: number): boolean {
    const character = String.fromCharCode(byte);
    switch (this.#state) {
      case 'Start':
        if (character !== '{') throw this.#unexpected(byte, at, 'a list begins with {');
        this.#state = 'FirstName';
        return true;
      case 'FirstName':
      case 'NextName':
        if (character === '}' && this.#state === 'FirstName') {
          this.#state = 'End';
          return true;
        }
        if (character !== '"') throw this.#unexpected(byte, at, 'a name belongs there');
        return this.#beginValue('Name');
      case 'Colon':
        if (character !== ':') throw this.#unexpected(byte, at, 'a colon belongs there');
        this.#state = 'AnyValue';
        return true;
      case 'AnyValue':
        if (this.#name !== 'items' || character !== '[') return this.#beginValue('Value');
        this.#hasItems = true;
        this.#state = 'FirstItem';
        return true;
      case 'FirstItem':
        if (character !== ']') return this.#beginValue('Item');
        this.#state = 'AfterValue';
        return true;
      case 'NextItem':
        return this.#beginValue('Item');
      case 'AfterItem':
        if (character !== ',' && character !== ']')
          throw this.#unexpected(byte, at, 'a comma or ] belongs there');
        this.#state = character === ',' ? 'NextItem' : 'AfterValue';
        return true;
      case 'AfterValue':
        if (character !== ',' && character !== '}')
          throw this.#unexpected(byte, at, 'a comma or } belongs there');
        this.#state = character === ',' ? 'NextName' : 'End';
        return true;
      default:
        throw this.#unexpected(byte, at, 'nothing may follow the list');
    }
  }

  #beginValue(state: 'Name' | 'Value' | 'Item'): false {
    this.#state = state;
    this.#scanner.begin();
    return false;
  }

  #scan(chunk: Uint8Array, at: number): number {
    try {
      return this.#scanner.scan(chunk, at);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw new JsonError(
        `${error.message}, between byte ${this.#offset + at} and ${this.#offset + chunk.length}`,
      );
    }
  }

  /** A value has ended: an item is handed out, the others are for the reader itself. */
  #captured(): Captured | undefined {
    const value = this.#capture.take();
    switch (this.#state) {
      case 'Item':
        this.#state = 'AfterItem';
        if (value === undefined) this.#oversized += 1;
        return value;
      case 'Name':
        this.#state = 'Colon';
        this.#name = value === undefined ? '' : String(JSON.parse(UTF8.decode(value.json)));
        return undefined;
      default:
        this.#state = 'AfterValue';
        this.#known(value?.json);
        return undefined;
    }
  }

  #known(bytes: Uint8Array | undefined): void {
    if (this.#name === 'metadata') {
      if (bytes === undefined) throw new JsonError('its metadata is too large');
      this.#continueToken = stringAt(bytes, ['continue']);
    }
    // An empty list in Go may be written as null.
    if (this.#name === 'items') {
      if (bytes === undefined || UTF8.decode(bytes).trim() !== 'null')
        throw new JsonError('its items are no list');
      this.#hasItems = true;
    }
  }

  #unexpected(byte: number, at: number, what: string): JsonError {
    return new JsonError(`${shown(byte)} at byte ${this.#offset + at}: ${what}`);
  }
}

type State =
  | 'Start'
  | 'FirstName'
  | 'NextName'
  | 'Name'
  | 'Colon'
  | 'AnyValue'
  | 'Value'
  | 'FirstItem'
  | 'NextItem'
  | 'Item'
  | 'AfterItem'
  | 'AfterValue'
  | 'End';

const UTF8 = new TextDecoder();
