import { spawn } from 'node:child_process';

/** Progress of the demo on the terminal: what happens now, and how long after the start. */
export interface Show {
  step(text: string): void;
  detail(text: string): void;
  block(title: string, text: string): void;
}

export function show(started = performance.now()): Show {
  const seconds = () => ((performance.now() - started) / 1000).toFixed(1).padStart(5);
  return {
    step: (text) => console.log(`\n[${seconds()} s] ${text}`),
    detail: (text) => console.log(`          ${text}`),
    block(title, text) {
      const line = '─'.repeat(Math.max(4, 100 - title.length));
      console.log(`\n── ${title} ${line}\n${text.trimEnd()}\n${'─'.repeat(104)}`);
    },
  };
}

/** Runs `kubectl … --watch` and shows each line as it comes; the returned function ends it. */
export function watchLive(
  kubectl: readonly string[],
  args: readonly string[],
  line: (text: string) => void,
): () => Promise<void> {
  const [program = '', ...before] = kubectl;
  const child = spawn(program, [...before, ...args, '--watch'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  let last = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = `${rest}${chunk.toString('utf8')}`.split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) {
      // The age moves without anything happening.
      const news = text.trimEnd().replace(/\s+\S+$/, '');
      if (news !== last) line(text.trimEnd());
      last = news;
    }
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return async () => {
    child.kill();
    await ended;
  };
}
