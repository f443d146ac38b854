import { CONFIG_SCHEMA_FILE, configSchemaText } from '../../src/settings/file/json-schema.ts';
import { CONFIGURATION_PAGE, configurationPage } from './configuration.ts';
import { ROUTING_PAGE, routingPage } from './routing/page.ts';

/** Files that the code tells, relative to the root of the repository. */
export const generatedFiles = (): readonly { readonly path: string; readonly content: string }[] => [
  { path: ROUTING_PAGE, content: routingPage() },
  { path: CONFIG_SCHEMA_FILE, content: configSchemaText() },
  { path: CONFIGURATION_PAGE, content: configurationPage() },
];
