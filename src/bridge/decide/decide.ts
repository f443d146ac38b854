import type { GitLabEvent, OtherEvent } from '../events/parse.ts';
import { decided, skip, type Verdict, type WorkflowView, type World } from './decision.ts';
import { decideMergeRequest } from './merge-request.ts';
import { decideNote } from './note.ts';
import { decidePipeline } from './pipeline.ts';

/** What becomes of an event, or what has to be asked before that can be said. Pure. */
export function decide<W extends WorkflowView>(event: GitLabEvent | OtherEvent, world: World<W>): Verdict<W> {
  switch (event.kind) {
    case 'Pipeline':
      return decidePipeline(event, world);
    case 'MergeRequest':
      return decideMergeRequest(event, world);
    case 'Note':
      return decideNote(event, world);
    case 'Other':
      return decided(skip('EventNotHandled', `${event.what} events start nothing`));
    default:
      return event satisfies never;
  }
}
