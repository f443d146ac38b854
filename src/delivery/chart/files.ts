import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ChartUnavailableError } from '../port.ts';
import { type ChartMetadata, parseChartYaml } from './metadata.ts';
import { readTar, TarError, type TarFile } from './tar.ts';

/** What is read of a packed chart outside the sandbox; nothing of it is ever unpacked onto a disk. */
export interface ChartFiles {
  readonly chartYaml: ChartMetadata;
  /** `values.yaml` as it is; empty where there is none. */
  readonly values: string;
  /** `values.schema.json` as it is. */
  readonly schema: string | undefined;
  readonly crds: readonly ChartText[];
  readonly templates: readonly ChartText[];
  /** Charts in `charts/`, by the name in their own Chart.yaml. */
  readonly subcharts: ReadonlyMap<string, ChartFiles>;
}

export interface ChartText {
  /** Below the chart's own directory. */
  readonly path: string;
  readonly text: string;
}

/** Bytes that an archive may have when it is unpacked, with the archives inside. */
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;
/** As much as helm reads of one file. */
const MAX_FILE_BYTES = 5 * 1024 * 1024;
const MAX_FILES = 5_000;
/** Helm knows no end; people do. */
const MAX_DEPTH = 4;

/**
 * Reads a chart's `.tgz` as a stream, bounded in size, number and depth. Throws `ChartUnavailableError`, whose
 * sentence says what is wrong, when it is no chart, damaged, or more than that.
 */
export async function chartFiles(archive: {
  readonly bytes: Uint8Array;
  readonly reference: { readonly name: string; readonly version: string };
}): Promise<ChartFiles> {
  const budget = { bytes: MAX_UNPACKED_BYTES, files: MAX_FILES };
  return await refusingDamaged(archive.reference, () => readChart(archive.bytes, budget, 0));
}

/**
 * One file that a chart brings, by its path below the chart's directory; undefined when it is not there. Bounds and
 * errors as those of `chartFiles`.
 */
export async function chartText(
  archive: {
    readonly bytes: Uint8Array;
    readonly reference: { readonly name: string; readonly version: string };
  },
  path: string,
): Promise<string | undefined> {
  return await refusingDamaged(archive.reference, async () => {
    const budget = { bytes: MAX_UNPACKED_BYTES, files: MAX_FILES };
    const own = (written: string) => written.slice(written.indexOf('/') + 1) === path;
    for await (const file of readTar(unpacked(archive.bytes, budget), own, MAX_FILE_BYTES))
      return decode(file.bytes);
    return undefined;
  });
}

async function refusingDamaged<T>(
  { name, version }: { readonly name: string; readonly version: string },
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TarError)) throw error;
    throw new ChartUnavailableError(`The archive of chart ${name} ${version} ${error.message}.`, {
      cause: error,
    });
  }
}

interface Budget {
  bytes: number;
  files: number;
}

async function readChart(packed: Uint8Array, budget: Budget, depth: number): Promise<ChartFiles> {
  if (depth > MAX_DEPTH) throw new TarError(`holds charts in charts, more than ${MAX_DEPTH} deep`);
  const files: TarFile[] = [];
  for await (const file of readTar(unpacked(packed, budget), isRead, MAX_FILE_BYTES)) {
    budget.files -= 1;
    if (budget.files < 0) throw new TarError(`has more than ${MAX_FILES} files`);
    // The first segment is the chart's directory, whatever its name.
    files.push({ path: file.path.slice(file.path.indexOf('/') + 1), bytes: file.bytes });
  }
  return await assembled(files, budget, depth);
}

async function* unpacked(packed: Uint8Array, budget: Budget): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  // The callback only keeps pipeline from throwing: the loop sees the error.
  pipeline(Readable.from([packed]), gunzip, () => undefined);
  try {
    for await (const chunk of gunzip) {
      const bytes: Uint8Array = chunk;
      budget.bytes -= bytes.length;
      if (budget.bytes < 0)
        throw new TarError(`unpacks to more than ${MAX_UNPACKED_BYTES / 1024 / 1024} MiB`);
      yield bytes;
    }
  } catch (error) {
    if (error instanceof TarError) throw error;
    throw new TarError('is no gzip file, or a damaged one', { cause: error });
  } finally {
    gunzip.destroy();
  }
}

/** Everything below `templates/` that helm renders, and what describes a chart; documentation is passed over. */
function isRead(path: string): boolean {
  const own = path.slice(path.indexOf('/') + 1);
  if (!path.includes('/') || own.split('/').includes('..')) return false;
  const innermost = own.replace(/^(?:charts\/[^/]+\/)+/, '');
  return (
    /^(Chart\.yaml|values\.yaml|values\.schema\.json|charts\/[^/]+\.tgz)$/.test(innermost) ||
    (/^(crds|templates)\//.test(innermost) && /\.(ya?ml|tpl|txt|json)$/.test(innermost))
  );
}

async function assembled(files: readonly TarFile[], budget: Budget, depth: number): Promise<ChartFiles> {
  if (depth > MAX_DEPTH) throw new TarError(`holds charts in charts, more than ${MAX_DEPTH} deep`);
  const own = files.filter(({ path }) => !path.startsWith('charts/'));
  const text = (name: string): string | undefined => {
    // The last one wins, as when it is unpacked.
    const file = own.findLast(({ path }) => path === name);
    return file === undefined ? undefined : decode(file.bytes);
  };
  const chartYaml = text('Chart.yaml');
  if (chartYaml === undefined) throw new TarError('holds no Chart.yaml');
  const metadata = parseChartYaml(chartYaml);
  if (metadata === undefined)
    throw new TarError('holds a Chart.yaml that is none: name or version is missing');
  const below = (folder: string): ChartText[] =>
    own
      .filter(({ path }) => path.startsWith(`${folder}/`))
      .map(({ path, bytes }) => ({ path, text: decode(bytes) }));
  const subcharts = new Map<string, ChartFiles>();
  for (const [folder, parts] of groups(files.filter(({ path }) => path.startsWith('charts/')))) {
    const packed = folder.endsWith('.tgz') ? parts.find(({ path }) => path === '') : undefined;
    const chart =
      packed === undefined
        ? await assembled(parts, budget, depth + 1)
        : await readChart(packed.bytes, budget, depth + 1);
    subcharts.set(chart.chartYaml.name, chart);
  }
  return {
    chartYaml: metadata,
    values: text('values.yaml') ?? '',
    schema: text('values.schema.json'),
    crds: below('crds'),
    templates: below('templates'),
    subcharts,
  };
}

/** Files of `charts/NAME/…` by NAME, with the path that is left. */
function groups(files: readonly TarFile[]): Map<string, TarFile[]> {
  const result = new Map<string, TarFile[]>();
  for (const { path, bytes } of files) {
    const [, folder = '', ...rest] = path.split('/');
    // A folder that starts so is kept for notes of its authors; helm passes it over.
    if (/^[._]/.test(folder)) continue;
    const parts = result.get(folder) ?? [];
    parts.push({ path: rest.join('/'), bytes });
    result.set(folder, parts);
  }
  return result;
}

const UTF8 = new TextDecoder();
const decode = (bytes: Uint8Array): string => UTF8.decode(bytes);
