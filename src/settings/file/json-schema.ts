import { z } from 'zod';
import { configFileSchema } from '../file-schema.ts';
import type { Path } from './source.ts';

type Node = Readonly<Record<string, unknown>>;

/** The JSON schema of the configuration file, for editors. Plain data, the same every time. */
export function configJsonSchema(): Node {
  const { $schema, ...schema } = z.toJSONSchema(configFileSchema, {
    io: 'input',
    unrepresentable: 'any',
    // What a schema says of its alternatives is all; zod adds what comes out of a preprocess, such as the map of a model.
    override({ jsonSchema }) {
      if (jsonSchema.anyOf === undefined) return;
      for (const key of ['type', 'properties', 'required', 'additionalProperties'] as const)
        delete jsonSchema[key];
    },
  });
  return { $schema, title: 'Configuration of Hummingbird', ...schema };
}

/** Where the schema is kept for editors, relative to the root of the repository; `npm run generate` writes it. */
export const CONFIG_SCHEMA_FILE = 'config/schema/hummingbird.json';

export const configSchemaText = (): string => `${JSON.stringify(configJsonSchema(), null, 2)}\n`;

/** Keys that can stand in the map at a path of the file; none where they are free. */
export function keysAt(path: Path): readonly string[] {
  let nodes: readonly Node[] = [configJsonSchema()];
  for (const step of path) nodes = nodes.flatMap((node) => below(node, String(step)));
  return nodes.flatMap(alternatives).flatMap((node) => Object.keys(nodeOf(node['properties'])));
}

function below(node: Node, step: string): readonly Node[] {
  return alternatives(node).flatMap((one) => {
    const named = nodeOf(one['properties'])[step];
    return [named, named === undefined ? one['additionalProperties'] : undefined, one['items']]
      .filter((inner) => typeof inner === 'object' && inner !== null)
      .map(nodeOf);
  });
}

function alternatives(node: Node): readonly Node[] {
  const { anyOf } = node;
  return Array.isArray(anyOf) ? anyOf.map(nodeOf).flatMap(alternatives) : [node];
}

/** Anything else has no keys. */
const nodeOf = (value: unknown): Node => (typeof value === 'object' && value !== null ? { ...value } : {});
