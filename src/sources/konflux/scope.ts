import { z } from 'zod';
import type { SourceScope } from '../port.ts';

/**
 * The label that carries the commit: Pipelines as Code writes the first on what it builds, Konflux' integration
 * service the second on the tests of what was built. Tekton hands both on to TaskRuns and pods.
 */
export const SHA_LABELS = ['pipelinesascode.tekton.dev/sha', 'pac.test.appstudio.openshift.io/sha'] as const;

export const sha = z
  .string()
  .regex(/^[0-9a-f]{7,64}$/i, 'expected a commit SHA in hex')
  .describe('Commit SHA, as in the event');

/** The run's whole SHA when the argument names it; labels are compared as a whole. */
export function ownSha(scope: SourceScope, asked: string): string | undefined {
  const own = scope.sha.toLowerCase();
  return isSha(own) && own.startsWith(asked.toLowerCase()) ? own : undefined;
}

/** The same for calls that name no commit. */
export function shaOf(scope: SourceScope): string | undefined {
  return ownSha(scope, scope.sha);
}

const isSha = (text: string): boolean => /^[0-9a-f]{7,64}$/.test(text);

/**
 * Other projects that a workflow opens (`allowedProjects`) open no commits here: a label names a commit and no project.
 */
export const foreignCommit = (scope: SourceScope, asked: string): string =>
  `Not allowed: commit ${asked}. This run reads what belongs to commit "${scope.sha}" only.`;
