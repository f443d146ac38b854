import type { RunResult } from '../controllers/run/result.ts';
import { failureText, placeholderText, resultText } from '../controllers/run/texts.ts';
import type { Marker, MergeRequestRef, NoteOutcome, NoteRef, Notes } from '../notes/port.ts';

/** The run's note: one POST, afterwards only PUTs. */
export interface RunNote {
  /** Posts that work has begun. Throws with GitLab's words when it is refused. */
  announce(): Promise<NoteRef>;
  /** Puts the end in its place. Throws likewise. */
  report(ref: NoteRef, result: RunResult): Promise<NoteRef>;
}

export function runNote(options: {
  readonly notes: Notes;
  readonly mergeRequest: MergeRequestRef;
  readonly marker: Marker;
  readonly internal: boolean;
  readonly model: string;
  readonly redact: (text: string) => string;
}): RunNote {
  const { notes, mergeRequest, marker, internal, model, redact } = options;
  const where = `${mergeRequest.project}!${mergeRequest.iid}`;
  return {
    async announce() {
      const text = placeholderText(marker.wf);
      return granted(await notes.create(mergeRequest, { text, marker, internal }), `a note on ${where}`);
    },
    async report(ref, result) {
      const text = result.reported
        ? resultText({
            answer: result.text,
            reason: result.reason,
            message: result.message,
            model,
            transcript: result.transcriptExcerpt,
            // The operator, which reads replies, has no session of this run.
            invitesReply: false,
          })
        : failureText(result.reason, result.text, result.transcriptExcerpt);
      return granted(
        await notes.update(mergeRequest, ref, { text: redact(text), marker }),
        `the update of note ${ref.noteId} on ${where}`,
      );
    },
  };
}

function granted(outcome: NoteOutcome<NoteRef>, what: string): NoteRef {
  if (outcome.kind === 'Ok') return outcome.value;
  throw new Error(
    `GitLab answers ${outcome.status} to ${what}: ${outcome.message}; check the project's action token`,
  );
}
