import ipaddr from 'ipaddr.js';

/** True when the address may be connected to. */
export type AddressPolicy = (address: string) => boolean;

export const anyAddress: AddressPolicy = () => true;

/**
 * Refuses what no configured server of ours lives on but what an attacker likes to reach: link-local addresses
 * (cloud metadata services), unspecified, multicast and broadcast ones. Private ranges stay allowed: GitLab and
 * models often live there.
 */
export const noMetadataServices: AddressPolicy = (address) => {
  const range = ipaddr.process(address).range();
  return !['linkLocal', 'unspecified', 'multicast', 'broadcast', 'reserved'].includes(range);
};

/** Why a literal address is refused; undefined for names and for allowed addresses. */
export function refusedLiteral(host: string, allow: AddressPolicy): string | undefined {
  const bare = host.startsWith('[') ? host.slice(1, -1) : host;
  if (!ipaddr.isValid(bare)) return undefined;
  return allow(bare) ? undefined : `address ${bare} may not be reached`;
}
