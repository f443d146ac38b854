/**
 * Why an event, or a part of it, started nothing. `told`: `Event` and `Warning` stand on the AgentWorkflow as
 * Kubernetes Events, `Answer` goes to whoever wrote the note as well; all are in the log and in the metric.
 */
export const SKIP_REASONS = {
  EventNotHandled: { told: 'Log', means: 'a kind of event that starts nothing' },
  NotMergeRequestPipeline: { told: 'Log', means: 'a pipeline of a push, a tag or a schedule' },
  StalePipeline: { told: 'Event', means: 'the merge request has a newer pipeline by now' },
  PipelineNotFinished: { told: 'Log', means: 'a step of a pipeline on its way, which GitLab tells too' },
  ActionIgnored: { told: 'Log', means: 'the merge request was not opened, reopened or updated' },
  NotOpen: { told: 'Log', means: 'the merge request is closed or merged' },
  NoHead: { told: 'Event', means: 'GitLab names no head commit, so there is nothing to look at' },
  ForeignProject: { told: 'Log', means: 'it happened in a fork; the merge request is in another project' },
  NoWorkflow: { told: 'Log', means: 'no AgentWorkflow names the project' },
  Suspended: { told: 'Event', means: 'spec.suspend of the workflow is true' },
  NotTriggered: { told: 'Log', means: 'the workflow has no trigger for this kind of event' },
  SkippedDraft: { told: 'Event', means: 'the merge request is a draft' },
  SkippedRule: { told: 'Event', means: 'an ignore list or the rules of the trigger refuse it' },
  InvalidRule: {
    told: 'Warning',
    means: 'a rule cannot be used; the trigger starts nothing until it is mended',
  },
  AccessDenied: { told: 'Event', means: 'somebody behind the event is no Developer of the project' },
  NotMergeRequestNote: { told: 'Log', means: 'a note on a commit, an issue or a snippet' },
  NoteNotNew: { told: 'Log', means: 'a note was edited; only new ones count' },
  SystemNote: { told: 'Log', means: "GitLab's own words about what happened" },
  OwnNote: { told: 'Log', means: 'written by one of our bots' },
  Commentary: { told: 'Log', means: 'a note that is addressed to no agent' },
  UnknownMarker: { told: 'Log', means: 'a reply to a bot whose markers are signed by none of our keys' },
  UnknownCommand: { told: 'Answer', means: 'no such command; what exists was answered' },
  AmbiguousCommand: { told: 'Answer', means: 'several workflows begin so; they were answered' },
  MessageTooLong: { told: 'Answer', means: 'longer than a run can take; the limit was answered' },
  WorkflowGone: { told: 'Answer', means: 'the workflow of the thread serves the project no longer' },
} as const satisfies Record<string, { told: 'Log' | 'Event' | 'Warning' | 'Answer'; means: string }>;

export type SkipReason = keyof typeof SKIP_REASONS;
