import { createServer } from 'node:net';

/** Ports nobody listens on right now, all different. */
export async function freePorts(count: number, address: string): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((accept, reject) => {
          server.once('error', reject);
          server.listen(0, address, () => {
            const bound = server.address();
            accept(bound !== null && typeof bound === 'object' ? bound.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}
