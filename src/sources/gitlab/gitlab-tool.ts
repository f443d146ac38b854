import type { z } from 'zod';
import type { Tool } from '../../agent/tools/port.ts';
import type { HttpError } from '../../http/client.ts';
import { explained as explainedBy, type Source, sourceTool, type ToolSpec } from '../source-tool.ts';

export type { ToolSpec } from '../source-tool.ts';

const GITLAB: Source = { name: 'GitLab', credential: 'read token' };

/** A tool on GitLab. */
export const gitlabTool = <Schema extends z.ZodObject>(spec: ToolSpec<Schema>): Tool =>
  sourceTool(GITLAB, spec);

/** What the model should know of a failed request to GitLab, and do. */
export const explained = (error: HttpError): string => explainedBy(GITLAB, error);
