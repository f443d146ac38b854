import type { ChartFiles } from '../chart/files.ts';
import type { ChartSource, Helm, HelmRequest, RepositoryTree } from '../port.ts';
import type { Application } from './applications/application.ts';
import { applicationsIn, findApplications } from './applications/find.ts';
import { type Manifest, parsedManifests } from './applications/manifests.ts';
import { changedFiles } from './changed-files.ts';
import { createCharts, foldersOf } from './charts.ts';
import { compareSides } from './compare.ts';
import { renderSides, type Side, type Tools } from './render.ts';
import { documentsOf } from './rendering/objects.ts';
import type { ApplicationReport, GateReport } from './report.ts';
import { unaccounted } from './unaccounted.ts';

export interface GateOptions {
  /** At the merge base. */
  readonly base: RepositoryTree;
  readonly head: RepositoryTree;
  /** `group/app`, to know the repository's own Git URLs; left out: all are taken for its own. */
  readonly project?: string;
  /** Asked for each application by itself: `keptCharts` where several want one chart. */
  readonly charts: ChartSource;
  readonly helm: Helm;
  /** Applications that are rendered, default 50; the others are named as not covered. */
  readonly maxApplications?: number;
  readonly signal?: AbortSignal;
}

export interface GateResult {
  readonly report: GateReport;
  /** Of the applications whose new chart refuses our values, by name: what a migration works on. */
  readonly refused: ReadonlyMap<string, RefusedValues>;
  /** CustomResourceDefinitions that drop versions, as both charts have them: where their schemas are. */
  readonly definitions: { readonly base: readonly Definition[]; readonly head: readonly Definition[] };
}

type Definition = Readonly<Record<string, unknown>>;

export interface RefusedValues {
  readonly base: ChartFiles | undefined;
  readonly head: ChartFiles;
  /** With the values as they are, for another try. */
  readonly request: HelmRequest;
}

const MAX_APPLICATIONS = 50;
/** An application that deploys applications that deploy applications. */
const MAX_DEPTH = 3;

/**
 * Renders what the bump touches at the merge base and at the head, and compares. What is wrong with charts and
 * values is in the report; rejects only with what the sandbox or the abort throws.
 */
export async function gateReport(options: GateOptions): Promise<GateResult> {
  const { base, head, signal } = options;
  const changed = changedFiles(base, head);
  const tools: Tools = { charts: createCharts(options.charts), helm: options.helm };
  const repository = (tree: RepositoryTree) => ({ tree, project: options.project });
  const before = await findApplications(repository(base));
  const after = await findApplications(repository(head));
  const applications: ApplicationReport[] = [];
  const notCovered = [...after.unread];
  const refused = new Map<string, RefusedValues>();
  const definitions = { base: [] as Definition[], head: [] as Definition[] };
  const budget = { left: options.maxApplications ?? MAX_APPLICATIONS, over: 0 };
  await compareAll(before.applications, after.applications, 0);
  if (budget.over > 0)
    notCovered.push(
      `${budget.over} more applications change; only the first ${applications.length} were rendered.`,
    );
  notCovered.push(
    ...unaccounted(changed, [
      { tree: base, applications: before.applications },
      { tree: head, applications: after.applications },
    ]),
  );
  if (applications.length === 0 && changed.length > 0)
    notCovered.push('No application that is known here is touched by what the merge request changes.');
  const report: GateReport = {
    version: 1,
    baseSha: base.sha,
    headSha: head.sha,
    changedFiles: changed,
    applications,
    notCovered: [...new Set(notCovered)],
  };
  return { report, refused, definitions };

  async function compareAll(
    from: readonly Application[],
    to: readonly Application[],
    depth: number,
  ): Promise<void> {
    for (const { one, other } of touched(from, to, (folder) => reaches(head, folder, changed))) {
      signal?.throwIfAborted();
      if (budget.left === 0) {
        budget.over += 1;
        continue;
      }
      budget.left -= 1;
      const { base: baseSide, head: headSide } = await renderSides(
        tools,
        {
          base: one && { tree: base, application: one },
          head: other && { tree: head, application: other },
        },
        signal,
      );
      const found = await compareSides(
        {
          base: one && baseSide && { application: one, side: baseSide },
          head: other && headSide && { application: other, side: headSide },
        },
        head,
      );
      applications.push(found.report);
      notCovered.push(...found.notCovered);
      definitions.base.push(...found.definitions.base);
      definitions.head.push(...found.definitions.head);
      if (headSide?.kind === 'SchemaRefused')
        refused.set(found.report.name, {
          base: baseSide === undefined || baseSide.kind === 'Unrenderable' ? undefined : baseSide.files,
          head: headSide.files,
          request: headSide.request,
        });
      if (depth < MAX_DEPTH)
        await compareAll(deployedBy(one, baseSide, base), deployedBy(other, headSide, head), depth + 1);
    }
  }

  /** A chart may render Applications in its turn. */
  function deployedBy(
    by: Application | undefined,
    side: Side | undefined,
    tree: RepositoryTree,
  ): readonly Application[] {
    if (by === undefined || side?.kind !== 'Rendered') return [];
    const documents = documentsOf(side.manifests).filter((text) => DEPLOYING.test(text));
    const manifests = documents.flatMap((text): readonly Manifest[] => {
      const read = parsedManifests(by.path, text);
      return read.kind === 'Read' ? read.manifests : [];
    });
    return applicationsIn(manifests, repository(tree));
  }
}

const DEPLOYING = /^apiVersion: ["']?(argoproj\.io|(helm|source)\.toolkit\.fluxcd\.io)\//m;

interface Touched {
  readonly one: Application | undefined;
  readonly other: Application | undefined;
}

/** The applications that are not the same at both commits, in the order of the head, then those that are gone. */
function touched(
  from: readonly Application[],
  to: readonly Application[],
  folderChanged: (folder: string) => boolean,
): readonly Touched[] {
  const before = new Map(from.map((application) => [application.name, application]));
  const after = new Set(to.map(({ name }) => name));
  return [
    ...to.map((other) => ({ one: before.get(other.name), other })),
    ...from.filter(({ name }) => !after.has(name)).map((one) => ({ one, other: undefined })),
  ].filter(
    ({ one, other }) => one === undefined || other === undefined || differs(one, other, folderChanged),
  );
}

function differs(one: Application, other: Application, folderChanged: (folder: string) => boolean): boolean {
  if (JSON.stringify({ ...one, path: '' }) !== JSON.stringify({ ...other, path: '' })) return true;
  return other.chart.kind === 'Folder' && folderChanged(other.chart.directory);
}

/** Whether a change lies in a folder of a chart, or in one that it depends on. */
function reaches(tree: RepositoryTree, folder: string, changed: readonly string[]): boolean {
  return foldersOf(tree, folder).some(
    (one) => one === '' || changed.some((path) => path.startsWith(`${one}/`)),
  );
}
