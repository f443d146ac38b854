import { request } from 'node:https';
import { inject } from 'vitest';
import '../cluster/setup.ts';
import type { Manifest } from './objects.ts';

export interface Answer {
  readonly status: number;
  /** The API server's words when it refuses. */
  readonly message: string;
}

/** Asks the API server to create an object for show, as kubectl's `create --dry-run=server` does, unknown fields refused. */
export function dryRunCreate(object: Manifest, plural: string): Promise<Answer> {
  const { server, caData, adminToken } = inject('cluster');
  const { apiVersion, metadata } = object;
  const path = `/apis/${apiVersion}/namespaces/${metadata.namespace}/${plural}?dryRun=All&fieldValidation=Strict`;
  return new Promise((resolve, reject) => {
    const call = request(
      new URL(path, server),
      {
        method: 'POST',
        ca: Buffer.from(caData, 'base64'),
        headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
        timeout: 120_000,
      },
      async (response) => {
        response.setEncoding('utf8');
        let body = '';
        for await (const chunk of response) body += chunk;
        resolve({ status: response.statusCode ?? 0, message: String(JSON.parse(body).message ?? '') });
      },
    );
    call.on('error', reject);
    call.on('timeout', () => call.destroy(new Error(`no answer to POST ${path} in 120 s`)));
    call.end(JSON.stringify(object));
  });
}
