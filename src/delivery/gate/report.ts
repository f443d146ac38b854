/** What a bump changes, in a form that code reads; `reportMarkdown` is the same for people. */
export interface GateReport {
  readonly version: 1;
  readonly baseSha: string;
  readonly headSha: string;
  /** Paths that the merge request changes, from the merge base; the scope of every edit. */
  readonly changedFiles: readonly string[];
  readonly applications: readonly ApplicationReport[];
  /** What was not looked at, each in one sentence. A report that names something here is never green. */
  readonly notCovered: readonly string[];
}

/** One Argo CD Application source or Flux HelmRelease that the bump touches. */
export interface ApplicationReport {
  /** `Application argocd/metallb`, `HelmRelease flux-system/metallb`. */
  readonly name: string;
  /** File that declares it. */
  readonly path: string;
  readonly base: ChartVersion | undefined;
  readonly head: ChartVersion | undefined;
  /** Where the chart says that it is developed, at the head. */
  readonly sources?: readonly UpstreamSource[];
  /** Where the repository sets its values at the head, the last one wins. */
  readonly valueSources?: readonly ValueSource[];
  /** Namespace, project, source, chart or cluster that moved: no version can bring that about. */
  readonly targeting: readonly Move[];
  readonly added: readonly ObjectRef[];
  readonly removed: readonly ObjectRef[];
  readonly changed: readonly ObjectChange[];
  /** Objects that changed in nothing but labels that name the chart's version, and checksums of others. */
  readonly relabelled?: number;
  /** Objects that are the same but for their apiVersion. */
  readonly apiVersionMoves: readonly (ObjectRef & { readonly from: string })[];
  readonly droppedVersions: readonly DroppedVersion[];
  /** Defaults of the chart that moved and that our values do not set, dotted, as short JSON. */
  readonly defaults: readonly { readonly key: string; readonly from?: string; readonly to?: string }[];
  /** Keys that our values set and the new chart neither declares nor reads, dotted. */
  readonly valuesNotDeclared: readonly string[];
  /** Lines of helm's own refusal. */
  readonly schemaRefusals: readonly string[];
  /** Helm's words where it renders not at all, by side. */
  readonly unrenderable: { readonly base?: string; readonly head?: string };
  /** Images of rendered containers that moved. */
  readonly images: readonly { readonly from: string; readonly to: string }[];
}

export interface ChartVersion {
  readonly repository: string;
  readonly chart: string;
  readonly version: string;
  readonly appVersion?: string;
}

/** Of a chart's own `sources` and `home`, in that order; https only. */
export interface UpstreamSource {
  readonly url: string;
  /** Whether a file of the repository names its host: a chart alone sends nobody anywhere. */
  readonly named: boolean;
}

/** A file, or the block at a dotted key inside it: `spec.source.helm.valuesObject`. */
export interface ValueSource {
  readonly path: string;
  readonly key?: string;
}

export interface Move {
  readonly what: 'Namespace' | 'Project' | 'Source' | 'Chart' | 'Cluster' | 'ReleaseName';
  readonly from: string;
  readonly to: string;
  /** The rendered object that moved, where it is not the application itself. */
  readonly object?: ObjectRef;
}

export interface ObjectRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

export interface ObjectChange extends ObjectRef {
  /** Dotted paths inside the object with both values as short JSON; undefined: not there on that side. */
  readonly fields: readonly { readonly path: string; readonly from?: string; readonly to?: string }[];
  /** Fields left out of `fields`, which is bounded. */
  readonly more: number;
}

/** A CRD of the chart that serves a version no more. */
export interface DroppedVersion {
  /** `bgppeers.metallb.io` */
  readonly crd: string;
  readonly group: string;
  readonly kind: string;
  readonly versions: readonly string[];
  /** What to move to: GA before beta before alpha, the higher number first. Undefined: the CRD is gone. */
  readonly target: string | undefined;
  /** Manifests of the repository that declare a dropped version. */
  readonly consumers: readonly { readonly path: string; readonly line: number; readonly object: string }[];
}

/** Counts per class that blocks; all zero and nothing uncovered is green. */
export interface GateCounts {
  readonly targeting: number;
  readonly apiVersion: number;
  /** Manifests that declare a dropped version. */
  readonly consumers: number;
  readonly unscanned: number;
  readonly valuesDropped: number;
  readonly unrenderable: number;
  readonly schema: number;
  /** Objects that are rendered no more, and boolean defaults that flipped. */
  readonly lost: number;
}
