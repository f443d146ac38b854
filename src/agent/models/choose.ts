import type { HttpClient } from '../../http/client.ts';
import { createAnthropicVertexModel } from './anthropic/adapter.ts';
import { createGeminiModel } from './gemini/adapter.ts';
import { createOpenAiModel } from './openai/adapter.ts';
import { type Model, ModelError } from './port.ts';
import type { GoogleAccess } from './vertex/credentials.ts';
import type { VertexPlace } from './vertex/endpoint.ts';

export type Provider = 'OpenAICompatible' | 'Gemini' | 'GeminiVertex' | 'AnthropicVertex';

export interface ModelChoice {
  readonly name: string;
  /** When absent, the name and what is given tell: see `providerOf`. */
  readonly provider?: Provider;
  /** OpenAI-compatible: up to and with /v1. Others: scheme and authority instead of Google's. */
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly vertex?: {
    readonly project?: string;
    /** Default `global`. */
    readonly location?: string;
    readonly access: GoogleAccess;
  };
  /** Most tokens of one answer. */
  readonly maxOutputTokens?: number;
}

interface Means {
  readonly http: HttpClient;
}

/** Throws `ModelError` for a choice that cannot be made, saying which field to mend. */
export function chooseModel(choice: ModelChoice, means: Means): Model {
  const provider = choice.provider ?? providerOf(choice.name, choice);
  const { baseUrl } = choice;
  if (baseUrl !== undefined && !URL.canParse(baseUrl))
    throw refused(`The base URL of the model ${choice.name} is not a URL: ${baseUrl}.`);
  switch (provider) {
    case 'OpenAICompatible':
      return openAiCompatible(choice, means);
    case 'Gemini':
      return gemini(choice, means);
    case 'GeminiVertex':
      return createGeminiModel({
        ...common(choice, means),
        service: { kind: 'Vertex', ...vertexOf(choice) },
      });
    case 'AnthropicVertex':
      return createAnthropicVertexModel({ ...common(choice, means), ...vertexOf(choice) });
    default:
      throw refused(`There is no model provider ${String(provider satisfies never)}.`);
  }
}

/** `gemini…` is Gemini, on Vertex when there is no API key; `claude…` is Claude on Vertex; others are OpenAI-compatible. */
export function providerOf(
  modelName: string,
  { apiKey, vertex }: Pick<ModelChoice, 'apiKey' | 'vertex'> = {},
): Provider {
  if (modelName.startsWith('gemini')) return vertex && !apiKey ? 'GeminiVertex' : 'Gemini';
  if (modelName.startsWith('claude')) return 'AnthropicVertex';
  return 'OpenAICompatible';
}

function openAiCompatible(choice: ModelChoice, means: Means): Model {
  const { name, baseUrl, apiKey } = choice;
  if (!baseUrl)
    throw refused(`The model ${name} has no base URL: set model.baseURL, e.g. http://localhost:8000/v1.`);
  return createOpenAiModel({ ...common(choice, means), baseUrl, ...(apiKey && { apiKey }) });
}

function gemini(choice: ModelChoice, means: Means): Model {
  const { name, apiKey, baseUrl } = choice;
  if (!apiKey)
    throw refused(
      `The model ${name} has no API key: set model.apiKeySecretRef, or provider GeminiVertex to use a Google Cloud account.`,
    );
  const service = { kind: 'DeveloperApi' as const, apiKey, ...(baseUrl && { origin: baseUrl }) };
  return createGeminiModel({ ...common(choice, means), service });
}

function vertexOf({ name, vertex, baseUrl }: ModelChoice): { place: VertexPlace; access: GoogleAccess } {
  if (!vertex)
    throw refused(
      `The model ${name} is asked on Vertex AI, and no Google Cloud account was given: set model.vertex.`,
    );
  const { project, location = 'global', access } = vertex;
  if (!project)
    throw refused(
      `The Google Cloud project of the model ${name} is not known: set model.vertex.project, or GOOGLE_CLOUD_PROJECT for the operator.`,
    );
  return { place: { project, location, ...(baseUrl && { origin: baseUrl }) }, access };
}

function common({ name, maxOutputTokens }: ModelChoice, { http }: Means) {
  return { name, http, ...(maxOutputTokens !== undefined && { maxOutputTokens }) };
}

function refused(message: string): ModelError {
  return new ModelError(message, { retryable: false });
}
