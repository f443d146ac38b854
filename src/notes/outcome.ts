import { HttpError } from '../http/client.ts';
import type { NoteOutcome } from './port.ts';

const REFUSALS = new Set([401, 403, 404]);

/** Answers that waiting does not cure become values; everything else is thrown on. */
export async function outcome<T>(doing: Promise<T>): Promise<NoteOutcome<T>> {
  try {
    return { kind: 'Ok', value: await doing };
  } catch (error) {
    if (!(error instanceof HttpError) || error.status === undefined || !REFUSALS.has(error.status))
      throw error;
    return { kind: 'Refused', status: error.status, message: error.message };
  }
}

/** `outcome` for steps that can themselves end in a refusal. */
export async function flatOutcome<T>(doing: Promise<NoteOutcome<T>>): Promise<NoteOutcome<T>> {
  const result = await outcome(doing);
  return result.kind === 'Ok' ? result.value : result;
}
