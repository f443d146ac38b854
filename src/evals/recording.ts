import { createHash } from 'node:crypto';
import type { GenerateRequest, Model, ModelResponse } from '../agent/models/port.ts';

/** Answers by what was asked, so that a changed prompt or case is asked anew and never takes an old answer. */
export interface Recording {
  readonly version: 1;
  readonly model: string;
  readonly answers: Record<string, ModelResponse>;
}

export const newRecording = (model: string): Recording => ({ version: 1, model, answers: {} });

/** Keeps every answer in the recording. */
export function recorded(model: Model, recording: Recording): Model {
  return {
    ...model,
    async generate(request) {
      const response = await model.generate(request);
      recording.answers[keyOf(request)] = response;
      return response;
    },
  };
}

/** Answers from the recording alone. Throws where it has none: the prompt, the case or the tools have changed. */
export function replayed(model: Model, { answers }: Recording): Model {
  return {
    ...model,
    async generate(request) {
      const response = answers[keyOf(request)];
      if (response === undefined)
        throw new Error(
          'the recording has no answer to this question: prompt, case or tools are others than when it was made; record again',
        );
      return response;
    },
  };
}

/** Reads what `JSON.stringify` of a recording wrote; throws for anything else. */
export function parseRecording(text: string): Recording {
  const value: unknown = JSON.parse(text);
  const isOne =
    typeof value === 'object' &&
    value !== null &&
    'version' in value &&
    value.version === 1 &&
    'answers' in value;
  if (!isOne) throw new Error('this file is no recording of version 1');
  // Written by `recorded` on this machine; a hand that changes it changes figures, and nothing else.
  return value as unknown as Recording;
}

function keyOf({ system, contents, tools, answer }: GenerateRequest): string {
  const asked = [system, contents, tools.map(({ name, parameters }) => [name, parameters]), answer?.schema];
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex');
}
