import type { HttpClient } from '../../http/client.ts';
import { createOpenAiModel } from './openai/adapter.ts';
import { type Model, ModelError } from './port.ts';

export type Provider = 'OpenAICompatible' | 'Gemini' | 'GeminiVertex' | 'AnthropicVertex';

export interface ModelChoice {
  readonly name: string;
  /** When absent, the name tells: `gemini…`, `claude…`; any other is OpenAI-compatible. */
  readonly provider?: Provider;
  readonly baseUrl?: string;
  readonly apiKey?: string;
}

/** Throws `ModelError` for a choice that cannot be made, saying which field to mend. */
export function chooseModel(choice: ModelChoice, { http }: { readonly http: HttpClient }): Model {
  const provider = choice.provider ?? providerOf(choice.name);
  switch (provider) {
    case 'OpenAICompatible': {
      const { name, baseUrl, apiKey } = choice;
      if (!baseUrl) {
        throw refused(`The model ${name} has no base URL: set model.baseURL, e.g. http://localhost:8000/v1.`);
      }
      if (!URL.canParse(baseUrl))
        throw refused(`The base URL of the model ${name} is not a URL: ${baseUrl}.`);
      return createOpenAiModel({ name, baseUrl, http, ...(apiKey && { apiKey }) });
    }
    case 'Gemini':
    case 'GeminiVertex':
    case 'AnthropicVertex':
      throw refused(
        `Provider ${provider} is not available in this build: use OpenAICompatible with a base URL.`,
      );
    default:
      throw refused(`There is no model provider ${String(provider satisfies never)}.`);
  }
}

export function providerOf(modelName: string): Provider {
  if (modelName.startsWith('gemini')) return 'Gemini';
  if (modelName.startsWith('claude')) return 'AnthropicVertex';
  return 'OpenAICompatible';
}

function refused(message: string): ModelError {
  return new ModelError(message, { retryable: false });
}
