/** Where a tenant's pipelines run, from the one URL that people write. */
export interface KonfluxAddress {
  /** API server: without `/ns/…` and without a slash at its end. */
  readonly server: string;
  readonly namespace: string;
  /** Web pages of the namespace: `https://konflux-ui.apps.DOMAIN/ns/NAMESPACE`. Absent where the host is an address. */
  readonly uiUrl?: string;
}

/** `https://api.DOMAIN:6443/ns/NAMESPACE`; undefined for anything else. */
export function parseClusterUrl(clusterUrl: string): KonfluxAddress | undefined {
  if (!URL.canParse(clusterUrl)) return undefined;
  const url = new URL(clusterUrl);
  const [, prefix, namespace] =
    /^(.*)\/ns\/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/?$/.exec(url.pathname) ?? [];
  if (prefix === undefined || namespace === undefined) return undefined;
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  const server = `${url.origin}${prefix}`;
  if (isAddress(url.hostname)) return { server, namespace };
  const domain = url.hostname.replace(/^api\./, '');
  return { server, namespace, uiUrl: `https://konflux-ui.apps.${domain}/ns/${namespace}` };
}

const isAddress = (hostname: string): boolean => hostname.startsWith('[') || /^[\d.]+$/.test(hostname);
