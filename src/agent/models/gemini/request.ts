import type { GenerateRequest } from '../port.ts';
import { asObject } from './answer.ts';
import { callsOf } from './calls.ts';
import { declare, geminiSchema } from './declaration.ts';
import type { GeminiContent, GeminiPart, GenerateBody } from './wire.ts';

export interface Dialect {
  /** The Developer API pairs calls and responses by id; Vertex refuses the field and pairs by position. */
  readonly callIds: boolean;
  /** Gemini 3 refuses a step whose first call has no signature. */
  readonly signedCalls: boolean;
  readonly maxOutputTokens: number | undefined;
  /** What was sent for an entry: the next call sends the same, whose JSON is kept. */
  readonly sent: WeakMap<GeminiContent, Sent>;
}

interface Sent {
  readonly before: GeminiContent | undefined;
  readonly turns: readonly Turn[];
}

type Turn = Pick<GeminiContent, 'role' | 'parts'>;

/** The body of one call. Works on copies: the conversation stays as it is. */
export function generateBody(
  { system, tools, ephemeral, answer }: GenerateRequest,
  history: readonly GeminiContent[],
  dialect: Dialect,
): GenerateBody {
  const contents = history.flatMap((entry, index) => sendable(entry, history[index - 1], dialect));
  return {
    systemInstruction: { parts: [{ text: system }] },
    contents:
      ephemeral === undefined ? contents : [...contents, { role: 'user', parts: [{ text: ephemeral }] }],
    ...(tools.length > 0 && { tools: [{ functionDeclarations: tools.map(declare) }] }),
    ...((dialect.maxOutputTokens !== undefined || answer !== undefined) && {
      generationConfig: {
        ...(dialect.maxOutputTokens !== undefined && { maxOutputTokens: dialect.maxOutputTokens }),
        ...(answer !== undefined && {
          temperature: 0,
          responseMimeType: 'application/json',
          responseJsonSchema: geminiSchema(answer.schema),
        }),
      },
    }),
  };
}

/** The same request without signatures, for a service that does not accept those of another. */
export function withoutSignatures(body: GenerateBody, { signedCalls }: Dialect): GenerateBody | undefined {
  const isSigned = ({ thoughtSignature: signature }: GeminiPart) =>
    signature !== undefined && signature !== NO_SIGNATURE;
  if (!body.contents.some(({ parts }) => parts.some(isSigned))) return undefined;
  const contents = body.contents.map(({ role, parts }) => {
    const unsigned = parts.map(({ thoughtSignature: _refused, ...part }): GeminiPart => part);
    return { role, parts: signedCalls ? withSignature(unsigned) : unsigned };
  });
  return { ...body, contents };
}

/** Without our own `extra`; empty entries (of a resumed session, say) are left out. */
function sendable(
  entry: GeminiContent,
  before: GeminiContent | undefined,
  dialect: Dialect,
): readonly Turn[] {
  const known = dialect.sent.get(entry);
  if (known !== undefined && known.before === before) return known.turns;
  const parts = entry.role === 'model' ? modelParts(entry, dialect) : userParts(entry, before, dialect);
  const turns = parts.length === 0 ? [] : [{ role: entry.role, parts }];
  dialect.sent.set(entry, { before, turns });
  return turns;
}

function modelParts({ parts }: GeminiContent, dialect: Dialect): readonly GeminiPart[] {
  const sent = parts.map((part) => {
    if (part.functionCall === undefined) return part;
    const { id, ...call } = part.functionCall;
    const functionCall = {
      ...call,
      args: asObject(call.args) ?? {},
      ...(dialect.callIds && id !== undefined && { id }),
    };
    return { ...part, functionCall };
  });
  return dialect.signedCalls ? withSignature(sent) : sent;
}

/** Of calls side by side only the first is signed. */
function withSignature(parts: readonly GeminiPart[]): readonly GeminiPart[] {
  const at = parts.findIndex(({ functionCall }) => functionCall !== undefined);
  const first = parts[at];
  if (first === undefined || first.thoughtSignature !== undefined) return parts;
  return parts.with(at, { ...first, thoughtSignature: NO_SIGNATURE });
}

/** What Google gives for calls that another model made: the step is then accepted without a signature. */
const NO_SIGNATURE = 'skip_thought_signature_validator';

/** Responses carry an id exactly when their call does. */
function userParts(
  { parts }: GeminiContent,
  before: GeminiContent | undefined,
  dialect: Dialect,
): readonly GeminiPart[] {
  const calls = before ? callsOf(before) : [];
  let position = 0;
  return parts.map((part) => {
    if (part.functionResponse === undefined) return part;
    const { id: _ours, ...functionResponse } = part.functionResponse;
    const id = calls[position++]?.id;
    return {
      ...part,
      functionResponse: { ...functionResponse, ...(dialect.callIds && id !== undefined && { id }) },
    };
  });
}
