import { createHash } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { arch } from 'node:os';
import { type TarEntry, text, writeTar } from './tar.ts';

/** The part of an image's configuration that we set; keys as the OCI image specification writes them. */
export interface ImageConfig {
  readonly User?: string;
  readonly Env: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly WorkingDir?: string;
}

/** Writes an OCI archive with one image of one layer, named `reference`; the same input gives the same bytes. */
export function writeImage(
  path: string,
  reference: string,
  config: ImageConfig,
  files: Iterable<TarEntry>,
): void {
  const layerPath = `${path}.layer`;
  const partial = `${path}.partial`;
  const layer = writeTar(layerPath, files);
  const configBlob = jsonBlob({
    architecture: architecture(),
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer.sha256}`] },
  });
  const manifestType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...configBlob.descriptor },
    layers: [
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest: `sha256:${layer.sha256}`,
        size: layer.size,
      },
    ],
  });
  const annotations = {
    'io.containerd.image.name': reference,
    'org.opencontainers.image.ref.name': reference,
  };
  const index = jsonBlob({
    schemaVersion: 2,
    manifests: [{ mediaType: manifestType, ...manifest.descriptor, annotations }],
  });
  writeTar(partial, [
    { kind: 'file', name: 'oci-layout', mode: 0o644, content: text('{"imageLayoutVersion":"1.0.0"}') },
    { kind: 'file', name: 'index.json', mode: 0o644, content: index.bytes },
    { kind: 'file', name: `blobs/sha256/${layer.sha256}`, mode: 0o644, content: { path: layerPath } },
    { kind: 'file', name: `blobs/sha256/${configBlob.sha256}`, mode: 0o644, content: configBlob.bytes },
    { kind: 'file', name: `blobs/sha256/${manifest.sha256}`, mode: 0o644, content: manifest.bytes },
  ]);
  rmSync(layerPath);
  renameSync(partial, path);
}

function jsonBlob(value: unknown): {
  bytes: Uint8Array;
  sha256: string;
  descriptor: { digest: string; size: number };
} {
  const bytes = text(JSON.stringify(value));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { bytes, sha256, descriptor: { digest: `sha256:${sha256}`, size: bytes.length } };
}

/** Go's name of the machine's architecture, which images use. */
function architecture(): string {
  return arch() === 'x64' ? 'amd64' : arch();
}
