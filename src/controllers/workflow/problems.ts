import type { AgentWorkflow } from '../../crds/agent-workflow.ts';
import { parseDuration } from '../../crds/duration.ts';
import { titleProblem } from '../../crds/title-pattern.ts';

/** What the API server cannot see to be wrong with a spec: one line for each, with its field and what to do. Pure. */
export function specProblems(spec: AgentWorkflow['spec']): readonly string[] {
  return [...titleProblems(spec), ...projectProblems(spec), ...timeoutProblems(spec)];
}

function titleProblems({ triggers }: AgentWorkflow['spec']): readonly string[] {
  return triggers.flatMap(({ event, rules = [] }) =>
    rules.flatMap(({ title = [] }, index) =>
      title.flatMap((pattern) => {
        const problem = titleProblem(pattern);
        return problem === undefined
          ? []
          : [`spec.triggers[${event}].rules[${index}].title ${problem}; mend it`];
      }),
    ),
  );
}

/** GitLab's paths are case-insensitive; the API server's list of projects is not. */
function projectProblems({ projects }: AgentWorkflow['spec']): readonly string[] {
  const seen = new Map<string, string>();
  return projects.flatMap(({ path }) => {
    const same = seen.get(path.toLowerCase());
    if (same !== undefined)
      return [`spec.projects: ${path} and ${same} are one project of GitLab; remove one of them`];
    seen.set(path.toLowerCase(), path);
    return [];
  });
}

function timeoutProblems({ limits }: AgentWorkflow['spec']): readonly string[] {
  return parseDuration(limits.timeout) > 0
    ? []
    : [`spec.limits.timeout is ${limits.timeout}, so no run could ask the model; make it 1m or more`];
}
