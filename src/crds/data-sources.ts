import { z } from 'zod';
import { cel, listMap, listSet, text } from './schema.ts';
import { httpUrl, projectPath, secretKeyRef } from './shapes.ts';

const gitlab = z.object({
  tokenSecretRef: secretKeyRef('tool', 'a token with scope read_api')
    .optional()
    .describe('Read token of the GitLab tools, for projects that name none of their own.'),
  allowedProjects: listSet(z.array(projectPath).max(100))
    .default([])
    .describe("Other projects that the tools may read, besides the merge request's own. Default: none."),
});

const konflux = z.object({
  clusterURL: httpUrl
    .regex(/\/ns\/[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must end in /ns/ and the namespace')
    .describe('API server of the cluster and the namespace: https://api.example.org:6443/ns/team-tenant.'),
  kubeconfigSecretRef: secretKeyRef('tool', 'a kubeconfig with a bearer token').describe(
    'Credentials for the cluster; read access to PipelineRuns, TaskRuns and pod logs is enough.',
  ),
  kubearchiveURL: httpUrl
    .optional()
    .describe(
      'Kubearchive that keeps what the cluster has deleted. Left out: only what the cluster still has.',
    ),
});

const testingFarm = z.object({
  artifactsURL: httpUrl
    .optional()
    .describe(
      'Where results and logs are. Left out: https://artifacts.osci.redhat.com/testing-farm; the public ranch has https://artifacts.dev.testing-farm.io.',
    ),
  apiURL: httpUrl
    .optional()
    .describe('Where requests are looked up. Left out: https://api.testing-farm.io/v0.1.'),
});

const toolName = text(128, 1).regex(
  /^[A-Za-z0-9_.-]+$/,
  'must be the name of a tool: letters, digits, _, . and -',
);

const mcpServer = cel(
  z.object({
    name: text(32, 1)
      .regex(/^[a-z][a-z0-9_]*$/, 'must be lower case letters, digits and _')
      .describe('Name of the server; the model sees its tools as NAME_TOOL.'),
    url: httpUrl.optional().describe('Address of a server that speaks streamable HTTP.'),
    command: z
      .array(text(1024, 1))
      .min(1)
      .max(32)
      .optional()
      .describe(
        'Program, by its full path, and arguments of a server that speaks over stdin and stdout, started beside the operator. The flag --mcp-command says which programs are allowed.',
      ),
    allowedTools: listSet(z.array(toolName).min(1).max(64)).describe(
      'Tools that the model may call; no others are shown to it.',
    ),
    requireApproval: listSet(z.array(toolName).max(64))
      .default([])
      .describe(
        'Of allowedTools: those whose calls wait until somebody with the Developer role answers /hummingbird approve on the merge request.',
      ),
    tokenSecretRef: secretKeyRef('tool', 'a bearer token')
      .optional()
      .describe('Token that is sent to the server; a program finds it in its environment, as MCP_TOKEN.'),
    approvals: listMap(
      z
        .array(
          z.object({
            tool: toolName.describe('Name of the tool as the server has it.'),
            definitionSHA256: text(64)
              .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower case hex')
              .describe(
                'SHA-256 of the definition that was looked at: name, description and parameters. hummingbird mcp list prints it.',
              ),
          }),
        )
        .max(64),
      'tool',
    )
      .default([])
      .describe(
        'Definitions that somebody has looked at. A tool whose definition has changed since is not offered.',
      ),
  }),
  {
    rule: 'has(self.url) != has(self.command)',
    message: 'dataSources.mcp needs exactly one of url and command for each server',
  },
  {
    rule: 'self.requireApproval.all(tool, tool in self.allowedTools)',
    message:
      'dataSources.mcp.requireApproval names a tool that allowedTools does not: add it there, or remove it',
    fieldPath: '.requireApproval',
  },
);

/** What the model can read; a source that is not named does not exist for it. */
export const dataSources = z.object({
  gitlab: gitlab.optional().describe('Merge request, diff, pipeline statuses, job logs and files in GitLab.'),
  konflux: konflux.optional().describe('PipelineRuns, TaskRuns and their logs in a Konflux cluster.'),
  testingFarm: testingFarm.optional().describe('Results and logs of Testing Farm. {} is enough.'),
  mcp: listMap(z.array(mcpServer).max(8), 'name')
    .optional()
    .describe('Servers of the Model Context Protocol whose tools the model gets.'),
});
