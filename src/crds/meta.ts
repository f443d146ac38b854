/** API group of every resource of this project. */
export const GROUP = 'hummingbird.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Labels and annotations: a contract with people's `kubectl -l` and with other tools. */
export const LABELS = {
  managedBy: 'app.kubernetes.io/managed-by',
  /** Value: the AgentRun's uid, so that a name used again never matches an old sandbox. */
  run: 'hummingbird.dev/run',
  workflow: 'hummingbird.dev/workflow',
  projectId: 'hummingbird.dev/project-id',
  session: 'hummingbird.dev/session',
  pool: 'hummingbird.dev/pool',
  tokenTier: 'hummingbird.dev/token-tier',
  /** On a ControllerRevision that a run made, of a spec that nobody has accepted yet. Value: run. */
  keptFor: 'hummingbird.dev/kept-for',
  /** On an AgentWorkflow that the operator makes from its configuration file. Value: file. */
  madeFrom: 'hummingbird.dev/made-from',
  /** Value: standby | active. */
  role: 'hummingbird/role',
} as const;

export const ANNOTATIONS = {
  /** Absolute RFC 3339 time after which the reaper may delete a claimed sandbox. */
  reapBy: 'hummingbird/reap-by',
  /** Present only while a sandbox lingers for this session. */
  sessionId: 'hummingbird/session-id',
  /** On a sandbox that lingers or lingered: uid of the run whose save of the session its work directory is. */
  savedBy: 'hummingbird.dev/saved-by',
  /** Holder's epoch at the time of the claim. */
  epoch: 'hummingbird.dev/epoch',
  /** On standby sandboxes: the pool's `maxActive`, a Go duration, which a claim's deadline keeps to. */
  maxActive: 'hummingbird.dev/max-active',
  /** On a sandbox that was made for one run, since nothing stood by. */
  onEmpty: 'hummingbird.dev/on-empty',
  /** Absolute RFC 3339 time until which the sandbox counts as proven to reach no network. Only the probe writes it. */
  egressBlockedUntil: 'hummingbird.dev/egress-blocked-until',
  /** On a sandbox that was proven shut and then found open: when, and what it reached. It is never handed out. */
  egressOpen: 'hummingbird.dev/egress-open',
  /** `disabled` on standby sandboxes of a pool without probe, which need no proof. */
  egressProbe: 'hummingbird.dev/egress-probe',
  /** namespace/name of the run, for people. */
  runName: 'hummingbird.dev/run-name',
  /** On machines: who commands run as. */
  sshUser: 'hummingbird.dev/ssh-user',
  /** On machines: `name/key` of the Secret, in their namespace, with the private key to log in with. */
  sshKey: 'hummingbird.dev/ssh-key',
  /** On standby machines: digest of the template that they were made from; KubeVirt replaces none by itself. */
  template: 'hummingbird.dev/template',
  /** On machines: the SSH host key that answered at the first contact. */
  hostKey: 'hummingbird.dev/ssh-host-key',
  /** On machines: the guest's boot id at the first contact. */
  bootId: 'hummingbird.dev/boot-id',
} as const;

export const MANAGED_BY = 'hummingbird-operator';
export const RUN_FINALIZER = `${GROUP}/sandbox`;
export const SESSION_FINALIZER = `${GROUP}/archive`;

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** The part of ObjectMeta that we read or write. */
export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** A condition as `metav1.Condition` has it. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** What a client must know of a kind to build its URL. */
export interface ResourceKind<T extends KubeObject = KubeObject> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Type carrier only; never set. */
  readonly _object?: T;
}
