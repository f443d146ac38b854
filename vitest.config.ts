import { defineConfig } from 'vitest/config';

/** `vitest --project unit` needs nothing but Node; `--project cluster` has a real cluster (see test/cluster/setup.ts). */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'hack/**/*.test.ts', 'bench/**/*.test.ts'],
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/cluster/setup.ts'],
          // One cluster and one machine: files that run side by side would measure each other.
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
