import { pathGlob } from './path-glob.ts';

/** Paths that no configuration opens: what builds, checks, merges or promotes, and who may approve it. */
export const DENIED_PATHS: readonly string[] = [
  '**/.git/**',
  '**/.gitmodules',
  '**/.gitattributes',
  '**/.gitlab-ci.yml',
  '**/*.gitlab-ci.yml',
  '**/.gitlab-ci.yaml',
  '**/.gitlab-ci/**',
  '**/.gitlab/**',
  '**/.github/**',
  '**/.forgejo/**',
  '**/.gitea/**',
  '**/.circleci/**',
  '**/.tekton/**',
  '**/.woodpecker/**',
  '**/.woodpecker.y*ml',
  '**/.travis.yml',
  '**/.pre-commit-config.y*ml',
  '**/azure-pipelines.y*ml',
  '**/bitbucket-pipelines.yml',
  '**/Jenkinsfile*',
  '**/CODEOWNERS',
  '**/.mergify.yml',
  '**/.mergify/**',
  '**/renovate.json*',
  '**/.renovaterc*',
  '**/dependabot.y*ml',
  '**/hummingbird.y*ml',
  '**/hummingbird/**',
  '**/.hummingbird/**',
];

/** API groups whose objects decide what is run, built or promoted: wherever they lie, their files are not edited. */
const DENIED_GROUPS = ['hummingbird.dev', 'kargo.akuity.io', 'tekton.dev', 'image.toolkit.fluxcd.io'];

const denied = DENIED_PATHS.map((pattern) => ({ pattern, matches: pathGlob(pattern.toLowerCase()) }));

/** The built-in pattern that shuts the path, however it is spelled on file systems that ignore case. */
export function deniedBy(path: string): string | undefined {
  const folded = foldedPath(path);
  return denied.find(({ matches }) => matches(folded))?.pattern;
}

/** As file systems compare names that ignore case, compositions, and characters without width. */
export const foldedPath = (path: string): string =>
  path
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()
    .split('/')
    .map((segment) => segment.replace(/[. ]+$/, '') || segment)
    .join('/');

/** The group of an `apiVersion` that makes its file one of those. */
export const deniedGroup = (apiVersion: string): string | undefined =>
  DENIED_GROUPS.find((group) => apiVersion.startsWith(`${group}/`));
