import { type Proxies, readProxies } from '../http/proxies.ts';
import { SettingsError } from '../settings/operator.ts';

/** The environment's proxies; throws SettingsError for one that cannot be used. */
export function proxiesOf(env: Readonly<Record<string, string | undefined>>): Proxies {
  try {
    return readProxies(env);
  } catch (error) {
    throw new SettingsError(error instanceof Error ? error.message : String(error));
  }
}
