import { z } from 'zod';

export type Parsed<T> =
  | { readonly ok: true; readonly args: T }
  | { readonly ok: false; readonly message: string };

export interface Parameters<T> {
  /** JSON Schema for the model. */
  readonly schema: Readonly<Record<string, unknown>>;
  parse(args: unknown): Parsed<T>;
}

/** One zod schema as what the model is told and as what its arguments are held to. */
export function defineParameters<S extends z.ZodType>(schema: S): Parameters<z.output<S>> {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io: 'input' });
  return {
    schema: json,
    parse(args) {
      const parsed = schema.safeParse(args);
      if (parsed.success) return { ok: true, args: parsed.data };
      const faults = parsed.error.issues.slice(0, 5).map((issue) => {
        const where = issue.path.length > 0 ? `${issue.path.map(String).join('.')}: ` : '';
        return `${where}${issue.message}`;
      });
      return { ok: false, message: faults.join('; ') };
    },
  };
}
