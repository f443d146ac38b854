import { z } from 'zod';
import { cel, listSet, text } from './schema.ts';
import { glob, secretKeyRef } from './shapes.ts';

// A literal path, with `**` as its first or last segment at most, and `*` and `?` within a segment.
const pathGlob = text(255, 1).regex(
  /^(\*\*\/)?([^*]|\*[^*])*\*?(\/\*\*)?$/,
  'must be a path, dir/**, **/name or **/dir/**; ** in the middle of a pattern matches nothing',
);

const edits = z.object({
  allowPaths: z
    .array(pathGlob)
    .min(1)
    .max(64)
    .describe('Paths that may be edited: apps/**. Only files that the bump itself touches are ever edited.'),
  denyPaths: z
    .array(pathGlob)
    .max(64)
    .default([])
    .describe('Paths that may not be edited, besides CI, gate and merge policy, which never may.'),
  allOrNothing: z
    .boolean()
    .default(true)
    .describe('true (the default): one refused edit refuses them all. false: the accepted ones are pushed.'),
  maxAttempts: z
    .int()
    .min(1)
    .max(10)
    .default(2)
    .describe('Pushes to one merge request before a human is called, default 2.'),
});

const upstreamNotes = z.object({
  enabled: z
    .boolean()
    .default(true)
    .describe('true (the default): release notes and commits may be read to explain a bump.'),
  maxReleases: z.int().min(0).max(100).default(5).describe('Most releases to read, default 5.'),
  maxCommits: z.int().min(0).max(1000).default(10).describe('Most commits to read, default 10.'),
  maxBodyChars: z
    .int()
    .min(0)
    .max(100_000)
    .default(4000)
    .describe('Most characters of one release note, default 4000.'),
});

const liveReads = cel(
  z.object({
    enabled: z
      .boolean()
      .default(false)
      .describe('true: count the objects on the cluster that a bump would touch. Default false.'),
    kubeconfigSecretRef: secretKeyRef('tool', 'a kubeconfig that can list objects and nothing more')
      .optional()
      .describe('Credentials for the cluster. Required when enabled.'),
  }),
  {
    rule: '!self.enabled || has(self.kubeconfigSecretRef)',
    message: 'delivery.liveReads.kubeconfigSecretRef is required when liveReads.enabled is true',
    fieldPath: '.kubeconfigSecretRef',
    reason: 'FieldValueRequired',
  },
);

/** Checked edits to merge requests in which a bot moves one pinned version. */
export const delivery = z.object({
  bumps: cel(
    z.object({
      labels: listSet(z.array(text(255, 1)).max(16))
        .default([])
        .describe('A merge request with one of these labels is a bump.'),
      authors: z
        .array(glob)
        .max(16)
        .default([])
        .describe('Globs of user names whose merge requests are bumps: "renovate-*".'),
    }),
    {
      rule: 'size(self.labels) + size(self.authors) > 0',
      message:
        'delivery.bumps needs at least one entry in labels or authors, so that it is clear what a bump is',
    },
  ).describe('How a version bump is recognised.'),
  edits: edits.describe('What may be edited.'),
  explainGreen: z
    .boolean()
    .default(true)
    .describe('true (the default): also explain bumps that the gate finds nothing against.'),
  migrateDroppedVersions: z
    .boolean()
    .default(true)
    .describe('true (the default): move manifests off API versions that the bump drops.'),
  structuralMigration: z
    .boolean()
    .default(true)
    .describe(
      'true (the default): let the model reshape a document when the new version has another schema.',
    ),
  migrateMaxDocs: z
    .int()
    .min(1)
    .max(100)
    .default(5)
    .describe('Most documents that are reshaped in one merge request, default 5.'),
  upstreamNotes: upstreamNotes.prefault({}).describe('What is read upstream, for explanations only.'),
  liveReads: liveReads.prefault({}).describe('What is read from the running cluster.'),
  needsHumanLabel: text(255, 1)
    .default('needs-human')
    .describe(
      'Label that hands a merge request to people, default needs-human; the agent leaves such ones alone.',
    ),
  statusName: text(255, 1)
    .optional()
    .describe(
      "Name of the commit status that tells what the agent does. Left out: the workflow's name. It is never red.",
    ),
});
