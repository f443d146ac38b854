import { defineConfig } from 'vitest/config';

/** Tests of the stand-ins themselves, and of what only needs them. */
const WITHOUT_CLUSTER = ['test/{builders,fakes,gitlab}/**/*.test.ts'];

/** Tests that need Podman and root, and no cluster. */
const WITH_PODMAN = ['test/sandbox/podman*.test.ts', 'test/cli/**/*.test.ts', 'test/delivery/**/*.test.ts'];

/**
 * `vitest --project unit` needs nothing but Node; `--project podman` installs Podman where it is missing;
 * `--project cluster` has a real cluster (see test/cluster/setup.ts).
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'hack/**/*.test.ts', 'bench/**/*.test.ts', ...WITHOUT_CLUSTER],
          // Milliseconds where nothing else runs; two cores that others use as well are another matter.
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'podman',
          include: WITH_PODMAN,
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/**/*.test.ts'],
          exclude: [...WITHOUT_CLUSTER, ...WITH_PODMAN],
          globalSetup: ['test/cluster/setup.ts'],
          // Two files side by side: they mostly wait for the cluster, and each has namespaces of its own.
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
