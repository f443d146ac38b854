import { DeliveryCase } from '../delivery-case.ts';
import type { Random } from '../scripted/adversary.ts';

/**
 * A bump that was made by chance: a chart with some switches, numbers, texts and a pin, of which the new version reads a
 * few another way. What is right is known since it was made so: to set those back, or where the repository cannot,
 * to ask a person.
 */
export function episode(random: Random, index: number): DeliveryCase {
  const chart = word(random);
  const switches = unique(random, 2 + whole(random, 4)).map((key) => ({ key, on: random() < 0.5 }));
  const numbers = unique(random, 1 + whole(random, 3)).map((key) => ({
    key: `${key}Count`,
    value: 1 + whole(random, 9),
  }));
  const version = { major: 1 + whole(random, 4), minor: whole(random, 9), patch: whole(random, 9) };
  const from = `${version.major}.${version.minor}.${version.patch}`;
  const to = `${version.major}.${version.minor + 1}.0`;
  const kind = pick(KINDS, random);
  const turned =
    kind === 'Turned' || kind === 'TurnedTwice' ? switches.slice(0, kind === 'Turned' ? 1 : 2) : [];
  const pinned = kind === 'Pinned';
  const pin = { old: `v${from}`, new: `v${to}` };
  const values = [
    ...switches.map(({ key, on }) => `${key}: ${on}`),
    ...numbers.map(({ key, value }) => `${key}: ${value}`),
    `agentTag: ${pin.old}`,
    'zone: old-zone',
  ];
  // Each service is there while its switch stands as the version reads it.
  const services = (turnedToo: boolean) =>
    switches.map(({ key, on }) => ({
      kind: 'Service',
      name: `${chart}-${key.toLowerCase()}`,
      when: { [key]: turnedToo && turned.some((one) => one.key === key) ? !on : on },
    }));
  const config = (needs: string) => ({
    kind: 'ConfigMap',
    name: chart,
    fields: {
      ...Object.fromEntries([...switches, ...numbers].map(({ key }) => [`data.${key}`, `$${key}`])),
      'data.agent': '$agentTag',
      'data.zone': '$zone',
      'data.needs': needs,
    },
  });
  const agent = (tag: string) => ({ kind: 'Endpoints', name: `${chart}-agent`, when: { agentTag: tag } });
  const resolver = (namespace: string) => ({ kind: 'Service', name: 'resolver', namespace });
  return DeliveryCase.parse({
    name: `episode-${index}`,
    path: 'triage',
    synthetic: true,
    subject: `The new version of ${chart} reads its settings another way`,
    bump: { chart, from, to, namespace: chart, form: random() < 0.2 ? 'Flux' : 'Argo' },
    values: `${shuffled(values, random).join('\n')}\n`,
    before: {
      values: `${values.join('\n')}\n`,
      objects: [
        ...services(false),
        config(pin.old),
        agent(pin.old),
        resolver('old-zone'),
        { kind: 'Role', name: `${chart}-gone` },
      ],
    },
    after: {
      values: `${values.join('\n')}\n`,
      objects: [
        ...services(true),
        config(kind === 'Pinned' ? pin.new : pin.old),
        agent(pinned ? pin.new : kind === 'Unstated' ? `v${version.major}.${version.minor + 1}.7` : pin.old),
        resolver(kind === 'Moved' ? 'new-zone' : 'old-zone'),
        ...(kind === 'Gone' ? [] : [{ kind: 'Role', name: `${chart}-gone` }]),
      ],
    },
    want:
      turned.length > 0
        ? {
            class: 'mechanical',
            edits: turned.map(({ key, on }) => ({ key, from: String(on), to: String(!on) })),
          }
        : pinned
          ? { class: 'mechanical', edits: [{ key: 'agentTag', from: pin.old, to: pin.new }] }
          : { class: 'escalate' },
  });
}

/** What the new version does: reads one or two switches the other way, wants another pin, moves, drops something. */
const KINDS = ['Turned', 'TurnedTwice', 'Pinned', 'Unstated', 'Moved', 'Gone'] as const;

const WORDS = [
  'cache',
  'relay',
  'index',
  'audit',
  'queue',
  'proxy',
  'store',
  'mesh',
  'probe',
  'vault',
  'route',
  'lens',
];

const whole = (random: Random, below: number): number => Math.floor(random() * below);
const pick = <T>(list: readonly [T, ...T[]], random: Random): T =>
  list[whole(random, list.length)] ?? list[0];
const word = (random: Random): string => WORDS[whole(random, WORDS.length)] ?? 'chart';

const unique = (random: Random, count: number): readonly string[] => shuffled(WORDS, random).slice(0, count);

function shuffled<T>(list: readonly T[], random: Random): readonly T[] {
  return list
    .map((value) => ({ value, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value);
}
