import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChartUnavailableError } from '../port.ts';
import { chartFiles } from './files.ts';
import { packChart } from './pack.ts';
import { writeTar } from './tar.ts';

const file = (path: string, text: string) => ({ path, bytes: Buffer.from(text) });
const chart = (name: string, version = '1.0.0') => file('Chart.yaml', `name: ${name}\nversion: ${version}\n`);
const read = (bytes: Uint8Array) => chartFiles({ bytes, reference: { name: 'web', version: '1.0.0' } });

describe('a packed chart', () => {
  it('is read with its schema, definitions, templates and subcharts, packed ones too', async () => {
    const inner = packChart('redis', [chart('redis'), file('values.yaml', 'port: 6379\n')]);
    const files = await read(
      packChart('web', [
        file('Chart.yaml', 'name: web\nversion: 1.10\nappVersion: "2"\ndependencies:\n  - name: redis\n'),
        file('values.yaml', 'replicas: 1\n'),
        file('values.schema.json', '{"type":"object"}'),
        file('README.md', '# Web'),
        file('crds/things.yaml', 'kind: CustomResourceDefinition\n'),
        file('templates/_names.tpl', '{{ .Values.name }}'),
        file('templates/deep/deployment.yaml', 'kind: Deployment\n'),
        { path: 'charts/redis-1.0.0.tgz', bytes: inner },
        file('charts/common/Chart.yaml', 'name: common\nversion: 2.0.0\n'),
        file('charts/common/templates/_a.tpl', 'a'),
      ]),
    );
    expect(files.chartYaml).toMatchObject({ name: 'web', version: '1.1', appVersion: '2' });
    expect(files.chartYaml.dependencies).toEqual([{ name: 'redis', version: '*', repository: '' }]);
    expect(files.values).toBe('replicas: 1\n');
    expect(files.schema).toBe('{"type":"object"}');
    expect(files.crds.map(({ path }) => path)).toEqual(['crds/things.yaml']);
    expect(files.templates.map(({ path }) => path)).toEqual([
      'templates/_names.tpl',
      'templates/deep/deployment.yaml',
    ]);
    expect([...files.subcharts.keys()].sort()).toEqual(['common', 'redis']);
    expect(files.subcharts.get('redis')?.values).toBe('port: 6379\n');
  });

  it('with names of more than 100 bytes is read whole', async () => {
    const long = `templates/${'d'.repeat(120)}/x.yaml`;
    const { templates } = await read(packChart('web', [chart('web'), file(long, 'a: 1')]));
    expect(templates).toEqual([{ path: long, text: 'a: 1' }]);
  });

  it.each([
    ['nothing of gzip', Buffer.from('<html>login</html>'), /is no gzip file, or a damaged one/],
    ['cut off', packChart('web', [chart('web')]).subarray(0, 60), /is no gzip file, or a damaged one/],
    ['no tar', gzipSync(Buffer.alloc(2048, 0x61)), /is damaged/],
    ['no Chart.yaml', packChart('web', [file('values.yaml', 'a: 1')]), /holds no Chart\.yaml/],
    [
      'a Chart.yaml that is none',
      packChart('web', [file('Chart.yaml', '- a')]),
      /name or version is missing/,
    ],
    [
      'a file that only grows when it is unpacked',
      packChart('web', [chart('web'), { path: 'templates/big.yaml', bytes: Buffer.alloc(6 << 20) }]),
      /has a file of more than 5242880 bytes: web\/templates\/big\.yaml/,
    ],
    [
      'a bomb in a file that nobody reads',
      gzipSync(writeTar([{ path: 'web/zeros.bin', bytes: Buffer.alloc(65 << 20) }])),
      /unpacks to more than 64 MiB/,
    ],
  ])('that is %s is refused in one sentence', async (_what, bytes, words) => {
    const refusal = await read(bytes).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ChartUnavailableError);
    expect(String(refusal)).toMatch(words);
    expect(String(refusal)).toMatch(/The archive of chart web 1\.0\.0 .*\.$/);
  });

  it('with charts in charts without an end is refused', async () => {
    let bytes = packChart('web', [chart('web')]);
    for (let depth = 0; depth < 6; depth += 1)
      bytes = packChart('web', [chart('web'), { path: 'charts/web.tgz', bytes }]);
    await expect(read(bytes)).rejects.toThrow(/more than 4 deep/);
  });

  it('never leads out of itself: links and paths with .. are passed over', async () => {
    const link = Buffer.from(writeTar([file('web/values.yaml', '')]).subarray(0, 512));
    link.write('2', 156);
    link.write('/etc/passwd', 157);
    link.write('        ', 148);
    let sum = 0;
    for (const byte of link) sum += byte;
    link.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const rest = writeTar([
      file('web/Chart.yaml', 'name: web\nversion: 1.0.0\n'),
      file('web/../values.yaml', 'a: 1'),
    ]);
    expect((await read(gzipSync(Buffer.concat([link, rest])))).values).toBe('');
  });

  it('that is damaged anywhere is read or refused in a sentence, and nothing else', async () => {
    const whole = writeTar([
      file('web/Chart.yaml', 'name: web\nversion: 1.0.0\ndependencies: [{name: redis}]\n'),
      file(`web/templates/${'d'.repeat(120)}.yaml`, 'a: 1'),
      { path: 'web/charts/redis.tgz', bytes: packChart('redis', [chart('redis')]) },
    ]);
    const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(damage, fc.option(fc.nat(whole.length)), async (bytes, end) => {
        const damaged = Uint8Array.from(whole.subarray(0, end ?? whole.length));
        for (const [at, value] of bytes) if (at < damaged.length) damaged[at] = value;
        const outcome = await read(gzipSync(damaged, { level: 1 })).catch((error: unknown) => error);
        if (outcome instanceof Error) expect(outcome).toBeInstanceOf(ChartUnavailableError);
      }),
      { seed: 8, numRuns: 500 },
    );
  });
});
