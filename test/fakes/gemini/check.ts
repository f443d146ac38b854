import { z } from 'zod';

const name = z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/);
const object = z.record(z.string(), z.unknown());

const functionCall = z.strictObject({ id: z.string().optional(), name, args: object.optional() });
const functionResponse = z.strictObject({ id: z.string().optional(), name, response: object });

const part = z
  .strictObject({
    text: z.string().optional(),
    thought: z.boolean().optional(),
    thoughtSignature: z.string().min(1).optional(),
    functionCall: functionCall.optional(),
    functionResponse: functionResponse.optional(),
  })
  .refine(
    (value) =>
      [value.text, value.functionCall, value.functionResponse].filter((data) => data !== undefined).length ===
      1,
    'exactly one of text, functionCall and functionResponse must be set',
  );

/** Keywords that the reference of JSON Schema fields names; the rest is refused here as some endpoints do. */
const schema: z.ZodType = z.lazy(() =>
  z.union([
    z.boolean(),
    z.strictObject({
      $id: z.string().optional(),
      $defs: z.record(z.string(), schema).optional(),
      $ref: z.string().optional(),
      $anchor: z.string().optional(),
      type: z.union([z.string(), z.array(z.string())]).optional(),
      format: z.string().optional(),
      title: z.string().optional(),
      description: z.string().optional(),
      enum: z.array(z.unknown()).optional(),
      items: schema.optional(),
      prefixItems: z.array(schema).optional(),
      minItems: z.int().optional(),
      maxItems: z.int().optional(),
      minimum: z.number().optional(),
      maximum: z.number().optional(),
      anyOf: z.array(schema).optional(),
      oneOf: z.array(schema).optional(),
      properties: z.record(z.string(), schema).optional(),
      additionalProperties: schema.optional(),
      required: z.array(z.string()).optional(),
      propertyOrdering: z.array(z.string()).optional(),
    }),
  ]),
);

const requestSchema = z.strictObject({
  systemInstruction: z.strictObject({ parts: z.array(z.strictObject({ text: z.string().min(1) })).min(1) }),
  contents: z.array(z.strictObject({ role: z.enum(['user', 'model']), parts: z.array(part).min(1) })).min(1),
  tools: z
    .array(
      z.strictObject({
        functionDeclarations: z
          .array(
            z.strictObject({
              name,
              description: z.string().min(1),
              parametersJsonSchema: schema
                .refine(
                  (value) => z.looseObject({ type: z.literal('object') }).safeParse(value).success,
                  'the parameters must be of type object',
                )
                .optional(),
            }),
          )
          .min(1),
      }),
    )
    .length(1)
    .optional(),
  generationConfig: z
    .strictObject({
      maxOutputTokens: z.int().positive().optional(),
      temperature: z.number().min(0).max(2).optional(),
      responseMimeType: z.literal('application/json').optional(),
      responseJsonSchema: schema.optional(),
    })
    .refine(
      ({ responseJsonSchema, responseMimeType }) =>
        responseJsonSchema === undefined || responseMimeType !== undefined,
      'response_mime_type has to be application/json when a schema is given',
    )
    .optional(),
});

export type GeminiRequestBody = z.output<typeof requestSchema>;
export type GeminiRequestContent = GeminiRequestBody['contents'][number];
type CallPart = NonNullable<GeminiRequestContent['parts'][number]['functionCall']>;

export interface Rules {
  /** Vertex knows no ids of calls. */
  readonly service: 'DeveloperApi' | 'Vertex';
  /** Calls must carry signatures, as for the third generation. */
  readonly signedCalls: boolean;
  /** Signatures that were given out, with what each stands beside (`signedText`). */
  readonly signatures: ReadonlyMap<string, string>;
}

export type Checked =
  | { readonly ok: true; readonly request: GeminiRequestBody }
  | { readonly ok: false; readonly message: string };

/** Refuses what the real API refuses, and what it only takes by leniency. */
export function checkRequest(body: unknown, rules: Rules): Checked {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return {
      ok: false,
      message: `Invalid JSON payload received at '${issue?.path.map(String).join('.')}': ${issue?.message}`,
    };
  }
  const fault = faultInConversation(parsed.data, rules);
  return fault ? { ok: false, message: fault } : { ok: true, request: parsed.data };
}

function faultInConversation({ contents, tools }: GeminiRequestBody, rules: Rules): string | undefined {
  const declared = (tools?.[0]?.functionDeclarations ?? []).map((tool) => tool.name);
  if (new Set(declared).size < declared.length) return 'Duplicate function declaration found';
  for (const [index, content] of contents.entries()) {
    const fault = faultInTurn(content, contents[index - 1], rules);
    if (fault) return `contents[${index}]: ${fault}`;
  }
  const last = contents.at(-1);
  if (last?.role === 'model') return 'Please ensure that the conversation ends with a user turn';
  return undefined;
}

function faultInTurn(
  content: GeminiRequestContent,
  before: GeminiRequestContent | undefined,
  rules: Rules,
): string | undefined {
  const calls = callsOf(content);
  const responses = content.parts.flatMap(({ functionResponse: response }) => response ?? []);
  const open = before ? callsOf(before) : [];
  if (before === undefined && content.role === 'model') return 'the conversation must begin with a user turn';
  if (before?.role === 'model' && content.role === 'model') return 'two model turns in a row';
  if (content.role === 'user' && calls.length > 0) return 'a user turn cannot call functions';
  if (content.role === 'model' && responses.length > 0) return 'a model turn cannot hold function responses';
  if (responses.length !== open.length) {
    return `the number of function response parts (${responses.length}) must equal that of the function call parts of the function call turn (${open.length})`;
  }
  for (const [position, response] of responses.entries()) {
    const call = open[position];
    if (call?.name !== response.name) return `function response ${response.name} answers no such call`;
    if (call.id !== response.id) return `function response id ${response.id} is not that of its call`;
  }
  if (rules.service === 'Vertex' && [...calls, ...responses].some(({ id }) => id !== undefined))
    return 'Unknown name "id": Cannot find field.';
  return faultInSignatures(content, rules);
}

function faultInSignatures({ role, parts }: GeminiRequestContent, rules: Rules): string | undefined {
  if (role !== 'model') return undefined;
  for (const { thoughtSignature, functionCall: call } of parts) {
    if (thoughtSignature === undefined || thoughtSignature === 'skip_thought_signature_validator') continue;
    if (rules.signatures.get(thoughtSignature) !== signedText(call)) return 'Corrupted thought signature.';
  }
  const first = parts.find((candidate) => candidate.functionCall !== undefined);
  if (rules.signedCalls && first && first.thoughtSignature === undefined)
    return `Function call ${first.functionCall?.name} is missing a thought_signature`;
  return undefined;
}

/** What a signature holds a call to: an id is not part of it. */
export function signedText(
  call: { readonly name: string; readonly args?: object | undefined } | undefined,
): string {
  return JSON.stringify([call?.name, call?.args]);
}

function callsOf({ parts }: GeminiRequestContent): readonly CallPart[] {
  return parts.flatMap(({ functionCall: call }) => call ?? []);
}
