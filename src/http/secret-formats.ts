/**
 * Secrets that can be told by their form, whosever they are: what a repository or a CI log gives away. Forms that
 * also fit ordinary words are left out; a value that this process knows is removed by its value.
 */
export function redactFormats(text: string): string {
  return withoutKeys(text).replace(TOKENS, '[redacted]');
}

/** Prefixes as their issuers document them, with the least length of what follows. */
const TOKENS = new RegExp(
  [
    // GitLab: personal, deploy, runner, CI job, trigger, feed, incoming mail, agent, OAuth, SCIM, feature flags.
    '\\bgl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[\\w.-]{20,}',
    '\\bgh[pousr]_[A-Za-z0-9]{36,}',
    '\\bgithub_pat_\\w{60,}',
    '\\b(?:AKIA|ASIA)[A-Z0-9]{16}\\b',
    '\\bAIza[\\w-]{35}\\b',
    '\\bya29\\.[\\w-]{20,}',
    // Class names begin with sk- too: a key has digits and capitals, and is long.
    '\\bsk-(?=[\\w-]{0,200}\\d)(?=[\\w-]{0,200}[A-Z])[\\w-]{32,}',
    '\\bxox[abprs]-[A-Za-z0-9-]{10,}',
    '\\bnpm_[A-Za-z0-9]{36}\\b',
    // A signed JSON web token: service accounts, CI jobs.
    '\\beyJ[\\w-]{10,}\\.eyJ[\\w-]{10,}\\.[\\w-]{10,}',
  ].join('|'),
  'g',
);

const BORDER = /-----(BEGIN|END) [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----/g;
/** Ends of lines, also as JSON writes them. */
const GAP = String.raw`(?:\s|\\[nrt])`;
const HEADERS = String.raw`(?:${GAP}*[A-Z][\w-]{1,30}: [^\n\\]{0,200})*`;
/** From right behind BEGIN: lines of base64, of which the last may be short when END follows. */
const BODY_AFTER = new RegExp(
  `${HEADERS}(?:${GAP}+[A-Za-z0-9+/=]{16,})+(?:${GAP}+[A-Za-z0-9+/=]{1,15}(?=${GAP}*-----END|${GAP}*$))?${GAP}*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?`,
  'y',
);
const BASE64 = /[A-Za-z0-9+/=]/;
const SHOWN_KEY = '[redacted private key]';

/** Also keys of which a cut has left the beginning or the end only. */
function withoutKeys(text: string): string {
  if (!text.includes('PRIVATE KEY')) return text;
  let clean = '';
  let done = 0;
  for (const border of text.matchAll(BORDER)) {
    const { index } = border;
    if (index < done) continue;
    const behind = index + border[0].length;
    if (border[1] === 'BEGIN') {
      BODY_AFTER.lastIndex = behind;
      if (!BODY_AFTER.test(text)) continue;
      clean += text.slice(done, index) + SHOWN_KEY;
      const matched = text.slice(behind, BODY_AFTER.lastIndex);
      // The gap behind a key without an end belongs to what follows.
      done = behind + (matched.endsWith('-') ? matched.length : matched.replace(TRAILING_GAP, '').length);
    } else {
      const from = bodyBefore(text, index, done);
      if (from === undefined) continue;
      clean += text.slice(done, from) + SHOWN_KEY;
      done = behind;
    }
  }
  return clean + text.slice(done);
}

const TRAILING_GAP = new RegExp(`${GAP}+$`);

/** Where the lines of base64 right before `end` begin; undefined when there are none. Looks back to `least` only. */
function bodyBefore(text: string, end: number, least: number): number | undefined {
  let from: number | undefined;
  for (let at = end; ; ) {
    at = skipGapBack(text, at, least);
    let start = at;
    while (start > least && BASE64.test(text.charAt(start - 1))) start--;
    // The n of a JSON \n is no base64.
    if (start > least && text.charAt(start - 1) === '\\' && start < at) start += 1;
    // A short line is the key's last one, or the first after a cut; anything else is prose.
    const first = start === least || start === 0;
    if (at - start >= 16 || (from === undefined && at > start) || (first && at > start)) from = start;
    else return from;
    if (first) return from;
    at = start;
  }
}

function skipGapBack(text: string, end: number, least: number): number {
  let at = end;
  for (;;) {
    if (at > least && /\s/.test(text.charAt(at - 1))) at -= 1;
    else if (at > least + 1 && text.charAt(at - 2) === '\\' && /[nrt]/.test(text.charAt(at - 1))) at -= 2;
    else return at;
  }
}
