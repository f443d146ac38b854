import { expect, it } from 'vitest';
import { parseClusterUrl } from './address.ts';

it.each([
  [
    'https://api.stage.example.org:6443/ns/team-tenant',
    {
      server: 'https://api.stage.example.org:6443',
      namespace: 'team-tenant',
      uiUrl: 'https://konflux-ui.apps.stage.example.org/ns/team-tenant',
    },
  ],
  [
    'https://k.example.org/proxy/ns/a/',
    {
      server: 'https://k.example.org/proxy',
      namespace: 'a',
      uiUrl: 'https://konflux-ui.apps.k.example.org/ns/a',
    },
  ],
  ['https://10.0.0.1:6443/ns/team', { server: 'https://10.0.0.1:6443', namespace: 'team' }],
  ['https://[fd00::1]:6443/ns/team', { server: 'https://[fd00::1]:6443', namespace: 'team' }],
])('%s names a server, a namespace and its pages', (url, address) => {
  expect(parseClusterUrl(url)).toEqual(address);
});

it.each([
  'https://api.example.org:6443',
  'https://api.example.org/ns/',
  'https://api.example.org/ns/Team',
  'https://api.example.org/ns/a/b',
  'https://api.example.org/ns/..',
  'https://me:pw@api.example.org/ns/team',
  'https://api.example.org/ns/team?x=1',
  'api.example.org/ns/team',
])('%s names none', (url) => {
  expect(parseClusterUrl(url)).toBeUndefined();
});
