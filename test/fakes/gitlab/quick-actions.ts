import { ACCESS, type FakeMergeRequest, type FakeUser, type GitLabState } from './state.ts';

/** Commands of GitLab's documentation that exist on merge requests (and a few on issues only: removed as well). */
const NAMES = [
  'add_child',
  'add_contacts',
  'approve',
  'assign',
  'assign_reviewer',
  'award',
  'blocked_by',
  'blocks',
  'cc',
  'clear_health_status',
  'clear_milestone',
  'clear_weight',
  'clone',
  'close',
  'confidential',
  'convert_to_ticket',
  'copy_metadata',
  'create_merge_request',
  'done',
  'draft',
  'due',
  'duplicate',
  'epic',
  'estimate',
  'estimate_time',
  'health_status',
  'invite_email',
  'iteration',
  'label',
  'labels',
  'link',
  'lock',
  'merge',
  'milestone',
  'move',
  'page',
  'promote',
  'promote_to',
  'react',
  'ready',
  'reassign',
  'reassign_reviewer',
  'rebase',
  'relabel',
  'relate',
  'remove_due_date',
  'remove_epic',
  'remove_estimate',
  'remove_iteration',
  'remove_label',
  'remove_milestone',
  'remove_reviewer',
  'remove_time_spent',
  'reopen',
  'request_review',
  'reviewer',
  'severity',
  'ship',
  'shrug',
  'spend',
  'spend_time',
  'spent',
  'status',
  'submit_review',
  'subscribe',
  'tableflip',
  'tag',
  'target_branch',
  'timeline',
  'title',
  'todo',
  'type',
  'unapprove',
  'unassign',
  'unassign_reviewer',
  'unlabel',
  'unlink',
  'unlock',
  'unsubscribe',
  'weight',
  'wip',
  'zoom',
];

/**
 * What GitLab looks for, in its order: a fenced block, an HTML block, a `>>>` quote, each passed over as a whole,
 * or a command alone at the start of a line. GitLab passes over some inline code too; this stand-in does not, so
 * that a text which is safe here is safe there.
 */
const SCAN = new RegExp(
  [
    '(?<=^|\\n)```.+?\\n```(?=\\n|$)',
    '(?<=^|\\n)<[^>]+?>\\n.+?\\n</[^>]+?>(?=\\n|$)',
    '(?<=^|\\n)>>>.+?\\n>>>(?=\\n|$)',
    `(?<=^|\\n)/(?<name>${NAMES.join('|')})(?: (?<argument>[^\\n]*))?(?:\\s*\\n|$)`,
  ].join('|'),
  'gis',
);

export interface Extracted {
  readonly text: string;
  readonly commands: readonly { readonly name: string; readonly argument: string }[];
}

/** Takes the commands out of a note's text. */
export function extractCommands(body: string): Extracted {
  const commands: { name: string; argument: string }[] = [];
  const text = body.replaceAll('\r', '').replace(SCAN, (...match) => {
    const groups: { name?: string; argument?: string } = match.at(-1);
    if (groups.name === undefined) return match[0];
    commands.push({ name: groups.name.toLowerCase(), argument: groups.argument?.trim() ?? '' });
    return '';
  });
  return { text: text.trimEnd(), commands };
}

/** Carries them out; returns the attributes that changed, as GitLab's `commands_changes` names them. */
export function applyCommands(
  state: GitLabState,
  mergeRequest: FakeMergeRequest,
  user: FakeUser,
  commands: Extracted['commands'],
): Record<string, unknown> {
  const level = mergeRequest.project.members.get(user.id) ?? ACCESS.none;
  const changes: Record<string, unknown> = {};
  for (const { name, argument } of commands) {
    const mayChange =
      level >= ACCESS.developer || (mergeRequest.author.id === user.id && level > ACCESS.none);
    const applied = (mayChange || name === 'todo' || name === 'subscribe') && apply(name, argument);
    mergeRequest.commands.push({ name, argument, by: user.username, applied });
  }
  return changes;

  function apply(name: string, argument: string): boolean {
    switch (name) {
      case 'close':
      case 'reopen':
        mergeRequest.state = name === 'close' ? 'closed' : 'opened';
        changes['state_event'] = name;
        return true;
      case 'merge':
        mergeRequest.state = 'merged';
        changes['merge'] = mergeRequest.sha;
        return true;
      case 'draft':
      case 'ready':
        mergeRequest.draft = name === 'draft';
        changes['wip_event'] = name;
        return true;
      case 'title':
        mergeRequest.title = argument;
        changes['title'] = argument;
        return true;
      case 'target_branch':
        mergeRequest.targetBranch = argument;
        changes['target_branch'] = argument;
        return true;
      case 'label':
      case 'labels':
      case 'relabel': {
        const labels = [...argument.matchAll(/~(?:"([^"]+)"|(\S+))/g)].map(
          (match) => match[1] ?? match[2] ?? '',
        );
        mergeRequest.labels = [...new Set([...(name === 'relabel' ? [] : mergeRequest.labels), ...labels])];
        changes['add_label_ids'] = labels;
        return labels.length > 0;
      }
      case 'unlabel':
      case 'remove_label':
        mergeRequest.labels = mergeRequest.labels.filter(
          (label) => argument !== '' && !argument.includes(label),
        );
        changes['remove_label_ids'] = [];
        return true;
      case 'assign':
      case 'reassign': {
        const users = named(argument);
        mergeRequest.assignees = users;
        changes['assignee_ids'] = users.map(({ id }) => id);
        return users.length > 0;
      }
      case 'unassign':
        mergeRequest.assignees = [];
        changes['assignee_ids'] = [];
        return true;
      case 'reviewer':
      case 'assign_reviewer':
      case 'request_review': {
        const users = named(argument);
        mergeRequest.reviewers = users;
        changes['reviewer_ids'] = users.map(({ id }) => id);
        return users.length > 0;
      }
      default:
        changes[name] = argument;
        return true;
    }
  }

  function named(argument: string): FakeUser[] {
    const names = [...argument.matchAll(/@([\w.-]+)/g)].map((match) => match[1]);
    return state.users.filter(({ username }) => names.includes(username));
  }
}
