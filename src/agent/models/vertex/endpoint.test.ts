import { expect, test } from 'vitest';
import { vertexUrl } from './endpoint.ts';

test.each([
  ['global', 'https://aiplatform.googleapis.com/v1/projects/p/locations/global/'],
  ['us', 'https://aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/'],
  ['eu', 'https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/'],
  ['europe-west1', 'https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/'],
])('location %s has its own host', (location, start) => {
  expect(vertexUrl({ project: 'p', location }, 'google', 'gemini-3-pro', 'generateContent')).toBe(
    `${start}publishers/google/models/gemini-3-pro:generateContent`,
  );
});

test('a version stays readable, and a name cannot leave its place in the path', () => {
  const place = { project: 'p', location: 'global', origin: 'http://localhost:1/' };
  expect(vertexUrl(place, 'anthropic', 'claude-opus-4-1@20250805', 'rawPredict')).toBe(
    'http://localhost:1/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-4-1@20250805:rawPredict',
  );
  expect(vertexUrl(place, 'google', '../x?y', 'generateContent')).toContain(
    '/models/..%2Fx%3Fy:generateContent',
  );
});
