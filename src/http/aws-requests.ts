import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { NodeHttpHandler, type NodeHttpHandlerOptions } from '@smithy/node-http-handler';
import type { Proxies } from './proxies.ts';

type Request = Parameters<NodeHttpHandler['handle']>[0];
type Response = ReturnType<NodeHttpHandler['handle']>;

/** Deadlines of a client of the AWS SDK. */
export type AwsDeadlines = Pick<
  NodeHttpHandlerOptions,
  'connectionTimeout' | 'requestTimeout' | 'throwOnRequestTimeout'
>;

/** As many connections as the SDK's own agents have. */
const MAX_SOCKETS = 50;

/** Sends the requests of a client of the AWS SDK through the proxies that everything else goes through. */
export class AwsRequests extends NodeHttpHandler {
  readonly #proxies: Proxies;
  readonly #deadlines: AwsDeadlines;
  readonly #through = new Map<string, NodeHttpHandler>();

  constructor(proxies: Proxies, deadlines: AwsDeadlines) {
    super(deadlines);
    this.#proxies = proxies;
    this.#deadlines = deadlines;
  }

  override async handle(request: Request, options: Parameters<NodeHttpHandler['handle']>[1] = {}): Response {
    const { protocol, hostname, port } = request;
    const proxy = this.#proxies(new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`));
    if (proxy === undefined) return super.handle(request, options);
    try {
      return await this.#handlerThrough(proxy).handle(request, options);
    } catch (error) {
      throw withoutAddress(error);
    }
  }

  override destroy(): void {
    for (const handler of this.#through.values()) handler.destroy();
    super.destroy();
  }

  #handlerThrough(proxy: string): NodeHttpHandler {
    const known = this.#through.get(proxy);
    if (known !== undefined) return known;
    const agent = { keepAlive: true, maxSockets: MAX_SOCKETS };
    const made = new NodeHttpHandler({
      ...this.#deadlines,
      httpAgent: new HttpAgent({ ...agent, proxyEnv: { HTTP_PROXY: proxy } }),
      httpsAgent: new HttpsAgent({ ...agent, proxyEnv: { HTTPS_PROXY: proxy } }),
    });
    this.#through.set(proxy, made);
    return made;
  }
}

/** Node names the proxy with its password. */
function withoutAddress(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_PROXY_TUNNEL') return error;
  const status = 'statusCode' in error ? Number(error.statusCode) : 0;
  const hint =
    status === 407
      ? 'put its user and password into HTTPS_PROXY'
      : 'correct its rules, HTTPS_PROXY or NO_PROXY';
  const told = new Error(
    status > 0 ? `the proxy answered ${status}; ${hint}` : `the proxy cannot be used; ${hint}`,
  );
  // A name that the SDK tries again.
  return status >= 500 ? Object.assign(told, { name: 'TimeoutError' }) : told;
}
