import { z } from 'zod';
import type { Tool, ToolContext, ToolOutput } from '../../agent/tools/port.ts';
import { HttpError } from '../../http/client.ts';

export interface ToolSpec<Schema extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  /** For the system prompt. */
  readonly notes?: string;
  readonly schema: Schema;
  /** May throw `HttpError`: it becomes an answer that the model can act on. */
  run(args: z.infer<Schema>, context: ToolContext): Promise<ToolOutput>;
}

/** A tool whose schema, validation and arguments come from one zod object. */
export function gitlabTool<Schema extends z.ZodObject>(spec: ToolSpec<Schema>): Tool {
  const { $schema: _draft, ...parameters } = z.toJSONSchema(spec.schema, { io: 'input' });
  return {
    definition: {
      name: spec.name,
      description: spec.description,
      parameters,
      ...(spec.notes === undefined ? {} : { notes: spec.notes }),
    },
    parse(args) {
      const parsed = spec.schema.safeParse(args);
      if (parsed.success) return { ok: true, args: parsed.data };
      return { ok: false, message: `${spec.name}: ${z.prettifyError(parsed.error)}` };
    },
    async run(args, context) {
      try {
        return await spec.run(spec.schema.parse(args), context);
      } catch (error) {
        if (error instanceof HttpError) return { kind: 'Error', message: explained(error) };
        if (error instanceof z.ZodError) return { kind: 'Error', message: unexpected(error) };
        throw error;
      }
    },
  };
}

/** What the model should know of a failed request, and do. */
export function explained(error: HttpError): string {
  return `GitLab: ${error.message}. ${advice(error)}`;
}

/** Arguments were checked before, so a mismatch is one of GitLab's answer. */
function unexpected(error: z.ZodError): string {
  return `GitLab answered in an unexpected form (${z.prettifyError(error)}). Name this as missing in the answer and go on without.`;
}

function advice({ status, retryable, code }: HttpError): string {
  if (status === 401)
    return 'The read token is not valid; no GitLab tool will work. Say so in the answer and go on without.';
  if (status === 403)
    return 'The read token may not see this. Name it as missing in the answer and go on without.';
  if (status === 404)
    return 'It does not exist or the read token may not see it. Check the arguments; do not guess others.';
  if (status === 429) return 'GitLab limits the rate. Go on with what is there and ask again later.';
  if (code === 'TooLarge') return 'It is too large to be read this way.';
  if (retryable) return 'This may pass: ask once more later, else name it as missing in the answer.';
  return 'Asking again will not help. Name it as missing in the answer.';
}
