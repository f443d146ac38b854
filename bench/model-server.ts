// A process of its own, so that its time is not taken from the loops that are measured: an OpenAI-compatible endpoint
// that thinks for DELAY ms, asks for one tool call an answer and, when CALLS results are there, answers in text.
// Arguments: DELAY CALLS. Prints its base URL and serves until its input ends.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [delay = '100', calls = '9'] = process.argv.slice(2);
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const thinking = sleep(Number(delay));
  const results = count(Buffer.concat(chunks), '"role":"tool"');
  await thinking;
  const message =
    results >= Number(calls)
      ? { role: 'assistant', content: 'Nothing to see.' }
      : { role: 'assistant', content: null, tool_calls: [toolCall(results)] };
  const choices = [{ index: 0, message, finish_reason: results >= Number(calls) ? 'stop' : 'tool_calls' }];
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ id: 'b', object: 'chat.completion', model: 'bench', choices, usage }));
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/v1`);
});
process.stdin.resume().once('end', () => process.exit(0));

function toolCall(number: number) {
  return { id: `call-${number}`, type: 'function', function: { name: 'read', arguments: '{}' } };
}

function count(bytes: Buffer, word: string): number {
  let found = 0;
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + 1)) found += 1;
  return found;
}
