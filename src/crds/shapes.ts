import { z } from 'zod';
import { cel, listMap, text } from './schema.ts';

/** Longest `message` of a condition, in characters; longer ones are refused by the API server. */
export const MESSAGE_MAX = 1024;

/** Cuts a text so that the API server takes it; the cut is marked. Counts characters as the API server does. */
export function clip(value: string, max: number = MESSAGE_MAX): string {
  const characters = [...value.slice(0, max * 2 + 2)];
  return characters.length <= max ? value : `${characters.slice(0, max - 1).join('')}…`;
}

export const dnsName = text(253, 1).regex(
  /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/,
  'must be the name of a Kubernetes object: lower case letters, digits, - and .',
);

const dnsLabel = text(63, 1).regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must be the name of a namespace');

/** US dollars as a decimal string, so that no reader rounds it. */
export const money = text(20, 1).regex(
  /^[0-9]{1,9}(\.[0-9]{1,9})?$/,
  'must be an amount in US dollars as a decimal string such as "2.50"',
);

export const timestamp = z.iso.datetime({ offset: true }).meta({ format: 'date-time', maxLength: 40 });

export const count = z.int().min(0).meta({ format: 'int64' });

/** HTTP or HTTPS address without user, query or fragment. */
export const httpUrl = text(1024, 1).regex(
  /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/,
  'must be an http:// or https:// address without user, query or fragment',
);

export const sha = text(64).regex(
  /^[0-9a-f]{40}([0-9a-f]{24})?$/,
  'must be a full commit hash, not an abbreviation or branch',
);

export const sha256 = text(64).regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower case hex');

export const projectPath = text(255, 3).regex(
  /^[A-Za-z0-9_.][A-Za-z0-9_.-]*(\/[A-Za-z0-9_.][A-Za-z0-9_.-]*)+$/,
  'must be the full path of a GitLab project such as group/app, without host or .git',
);

export const iid = z.int().min(1).max(2_147_483_647).meta({ format: 'int64' });

export const gitlabId = z.int().min(1).meta({ format: 'int64' });

/** A glob that is matched against a whole name; `*` and `?` are the wildcards. */
export const glob = text(255, 1);

const reference = (what: string) =>
  z.object({ name: dnsName.describe(`Name of the ${what}, in the same namespace.`) });

export const workflowRef = reference('AgentWorkflow');
export const sessionRef = reference('AgentSession');
export const localSecretRef = reference('Secret');

export const poolRef = z.object({
  name: dnsName.describe('Name of the SandboxPool.'),
  namespace: dnsLabel
    .optional()
    .describe('Namespace of the SandboxPool. Left out: the namespace of the object that names it.'),
});

/** One key of a Secret in the same namespace; `tier` is the label value that the Secret has to carry. */
export function secretKeyRef(tier: 'action' | 'tool' | 'model' | undefined, holds: string) {
  const label = tier === undefined ? '' : ` It must carry the label hummingbird.dev/token-tier: ${tier}.`;
  return z.object({
    name: dnsName.describe(`Name of the Secret, in the same namespace.${label}`),
    key: text(253, 1)
      .regex(/^[-._a-zA-Z0-9]+$/, 'must be a key of a Secret: letters, digits, -, _ and .')
      .describe(`Key of the Secret's data that holds ${holds}.`),
  });
}

export const configMapKeyRef = z.object({
  name: dnsName.describe('Name of the ConfigMap, in the same namespace.'),
  key: text(253, 1)
    .regex(/^[-._a-zA-Z0-9]+$/, 'must be a key of a ConfigMap: letters, digits, -, _ and .')
    .describe("Key of the ConfigMap's data that holds the text."),
});

/** Where a run or a workflow gets its sandboxes: a pool, or none at all. */
export const sandboxChoice = cel(
  z.object({
    poolRef: poolRef.optional().describe('Pool to claim a sandbox from.'),
    none: z
      .literal(true)
      .optional()
      .describe(
        'true: no sandbox. The model gets no tool to run commands and sees previews of large data only.',
      ),
  }),
  {
    rule: 'has(self.poolRef) != has(self.none)',
    message: 'sandbox needs exactly one of poolRef and none: set poolRef to use a pool, or none: true',
  },
);

/** Key in the operator's bucket or folder: parts of letters, digits and `-_.=`, joined by `/`. */
export const storeKey = text(512, 1).regex(
  /^[A-Za-z0-9_.=-]+(\/[A-Za-z0-9_.=-]+)*$/,
  'must be a key in the store',
);

/** An object in the store, by key. */
export const storedObject = z.object({
  key: storeKey.describe("Key in the operator's bucket or folder."),
  sha256: sha256.describe('SHA-256 of the object, lower case hex.'),
  bytes: count.describe('Size of the object in bytes.'),
});

const condition = z.object({
  type: text(316, 1)
    .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/)
    .describe('What the condition is about.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('True, False, or Unknown while it is not decided.'),
  reason: text(128, 1)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .describe('One word for programs: why the condition has this status.'),
  message: text(MESSAGE_MAX).describe('Sentence for people: what happened, where, and what to do.'),
  lastTransitionTime: timestamp.describe('When the status last changed, RFC 3339.'),
  observedGeneration: count
    .optional()
    .describe(
      'metadata.generation that the condition was computed from; lower than the current one means out of date.',
    ),
});

export const conditions = listMap(z.array(condition).max(8), 'type');
