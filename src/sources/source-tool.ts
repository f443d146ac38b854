import { z } from 'zod';
import type { Tool, ToolContext, ToolOutput } from '../agent/tools/port.ts';
import { HttpError } from '../http/client.ts';

/** What the tools of one data source have in common. */
export interface Source {
  /** As messages call it: `GitLab`. */
  readonly name: string;
  /** What it is asked with, as messages call it: `read token`. Left out: nothing, anybody may ask. */
  readonly credential?: string;
  /** Merged into every answer of its tools: addresses that links are made of. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ToolSpec<Schema extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  /** What the schema cannot say, for the system prompt. Markdown. Tools may share a text: it is shown once. */
  readonly notes?: string;
  readonly schema: Schema;
  /** May throw `HttpError`, or `ZodError` for an unexpected answer: they become messages that the model can act on. */
  run(args: z.infer<Schema>, context: ToolContext): Promise<ToolOutput>;
}

/** A tool whose parameters, validation and arguments come from one zod object. */
export function sourceTool<Schema extends z.ZodObject>(source: Source, spec: ToolSpec<Schema>): Tool {
  const { $schema: _draft, ...parameters } = z.toJSONSchema(spec.schema, { io: 'input' });
  return {
    definition: {
      name: spec.name,
      description: spec.description,
      parameters,
      ...(spec.notes === undefined ? {} : { notes: spec.notes }),
    },
    ...(source.metadata === undefined ? {} : { responseMetadata: source.metadata }),
    parse(args) {
      const parsed = spec.schema.safeParse(args);
      if (parsed.success) return { ok: true, args: parsed.data };
      return { ok: false, message: `${spec.name}: ${z.prettifyError(parsed.error)}` };
    },
    async run(args, context) {
      try {
        return await spec.run(spec.schema.parse(args), context);
      } catch (error) {
        if (error instanceof HttpError) return { kind: 'Error', message: explained(source, error) };
        if (error instanceof z.ZodError) return { kind: 'Error', message: unexpected(source, error) };
        throw error;
      }
    },
  };
}

/** What the model should know of a failed request, and do. */
export function explained(source: Source, error: HttpError): string {
  return `${source.name}: ${error.message}. ${advice(source, error)}`;
}

/** Arguments were checked before, so a mismatch is one of the answer. */
function unexpected({ name }: Source, error: z.ZodError): string {
  return `${name} answered in an unexpected form (${z.prettifyError(error)}). Name this as missing in the answer and go on without.`;
}

function advice({ name, credential }: Source, { status, retryable, code }: HttpError): string {
  if (status === 401)
    return credential === undefined
      ? 'It wants to know who asks, which this run cannot say. Name it as missing in the answer and go on without.'
      : `The ${credential} is not valid; no ${name} tool will work. Say so in the answer and go on without.`;
  const who = credential === undefined ? 'this run' : `the ${credential}`;
  if (status === 403)
    return `${capitalised(who)} may not see this. Name it as missing in the answer and go on without.`;
  if (status === 404)
    return `It does not exist or ${who} may not see it. Check the arguments; do not guess others.`;
  if (status === 429) return `${name} limits the rate. Go on with what is there and ask again later.`;
  if (code === 'TooLarge') return 'It is too large to be read this way.';
  if (code === 'RefusedRedirect' || code === 'RefusedAddress')
    return 'It leads out of where this run may read. Name it as missing in the answer and go on without.';
  if (retryable) return 'This may pass: ask once more later, else name it as missing in the answer.';
  return 'Asking again will not help. Name it as missing in the answer.';
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
