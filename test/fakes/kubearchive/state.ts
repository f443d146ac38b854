/** What of an object the archive looks at; the rest it hands out as it was kept. */
export interface KeptObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly creationTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

export interface Row {
  /** In the order of their keeping, as a database numbers them. */
  readonly id: number;
  readonly date: string;
  /** `apis/tekton.dev/v1/pipelineruns`. */
  readonly resource: string;
  readonly object: KeptObject;
  readonly json: string;
}

export class ArchiveState {
  readonly rows: Row[] = [];
  /** By `namespace/pod/container`; the first container of a pod is its default. */
  readonly logs = new Map<string, Uint8Array>();
  /** Tokens, with the namespaces that each may read. */
  readonly tokens = new Map<string, readonly string[]>();

  keep(...objects: readonly KeptObject[]): void {
    for (const object of objects)
      this.rows.push({
        id: this.rows.length + 1,
        date: object.metadata.creationTimestamp ?? '2026-11-30T08:00:00Z',
        resource: resourceOf(object),
        object,
        json: JSON.stringify(object),
      });
  }

  keepLog(namespace: string, pod: string, container: string, text: string | Uint8Array): void {
    this.logs.set(`${namespace}/${pod}/${container}`, typeof text === 'string' ? Buffer.from(text) : text);
  }

  grant(token: string, ...namespaces: readonly string[]): void {
    this.tokens.set(token, namespaces);
  }

  /** Newest first, and of the same second the one that was kept last. */
  sorted(resource: string, namespace: string): readonly Row[] {
    return this.rows
      .filter((row) => row.resource === resource && row.object.metadata.namespace === namespace)
      .toSorted((one, other) =>
        one.date === other.date ? other.id - one.id : one.date < other.date ? 1 : -1,
      );
  }
}

/** The kinds here all have a plural by adding an s. */
function resourceOf({ apiVersion, kind }: KeptObject): string {
  return `${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}/${kind.toLowerCase()}s`;
}
