import { describe, expect, it } from 'vitest';
import { expiredText, failureText, placeholderText, resultText } from './texts.ts';

const parts = {
  ...{ answer: 'It is the cache.', message: 'm', model: 'test-script', transcript: '' },
  invitesReply: true,
} as const;

describe('the texts of a note', () => {
  it('names the workflow while it runs', () => {
    expect(placeholderText('analyze-failures')).toContain('analyze-failures');
  });

  it('begins with the answer, and ends with the model', () => {
    const text = resultText({ ...parts, reason: 'Succeeded' });
    expect(text).toMatch(/^It is the cache\./);
    expect(text).toMatch(/_Model: test-script_$/);
    expect(text).not.toContain('partial');
    expect(text).not.toContain('<details>');
  });

  it('says once how to go on: not in the answer to a reply', () => {
    expect(resultText({ ...parts, reason: 'Succeeded' })).toMatch(/\n\n_Reply to this note to ask more/);
    expect(resultText({ ...parts, reason: 'Partial' })).toContain('Reply to this note');
    expect(resultText({ ...parts, reason: 'Succeeded', invitesReply: false })).not.toContain('Reply');
  });

  it('says first that an answer is partial, and why', () => {
    const text = resultText({ ...parts, reason: 'Timeout', message: 'Not finished within 25 min' });
    expect(text).toMatch(/^_This result is partial: Not finished within 25 min_\n\nIt is the cache\./);
  });

  it('folds the transcript below the answer', () => {
    const text = resultText({ ...parts, reason: 'Succeeded', transcript: '## Iteration 1' });
    expect(text.indexOf('It is the cache.')).toBeLessThan(text.indexOf('<details>'));
    expect(text).toContain('## Iteration 1\n\n</details>');
  });

  it.each([
    ['ModelError', 'failed'],
    ['Cancelled', 'cancelled'],
    ['Superseded', 'superseded'],
    ['BudgetExceeded', 'ended at its budget'],
    // The loop ended well, its stored text cannot be read: never "failed", and never silent.
    ['Succeeded', 'could not be kept'],
  ] as const)('says of %s that it %s, with reason and words', (reason, word) => {
    const text = failureText(reason, 'What happened.');
    expect(text.split('\n')[0]).toContain(word);
    expect(text).toContain(`Reason: ${reason}. What happened.`);
  });

  it('folds what was done below the words about it, when there is no report', () => {
    const text = failureText('BudgetExceeded', 'What happened.', '## Iteration 1');
    expect(text).not.toContain('failed');
    expect(text.indexOf('What happened.')).toBeLessThan(text.indexOf('<details>'));
    expect(text).toContain('## Iteration 1\n\n</details>');
    expect(failureText('Timeout', 'What happened.')).not.toContain('<details>');
  });

  it('answers a reply to an expired conversation politely, with what to do', () => {
    const text = expiredText('analyze-failures');
    expect(text).toMatch(/^Thank you/);
    expect(text).toContain('expired');
    expect(text).toContain('start the analyze-failures workflow anew');
    expect(text).not.toMatch(/failed|InvalidSpec/);
  });
});
