import { z } from 'zod';
import { cel, text } from './schema.ts';
import { httpUrl, money, secretKeyRef } from './shapes.ts';

const perMillion = (what: string) => money.describe(`US dollars for a million ${what}, as a decimal string.`);

/** Which model a workflow uses, how it is reached and what it costs. */
export const model = cel(
  z.object({
    name: text(255, 1).describe('Name of the model as its provider knows it.'),
    provider: z
      .enum(['Gemini', 'GeminiVertex', 'AnthropicVertex', 'OpenAICompatible'])
      .describe(
        'Protocol and service: Gemini (API key), GeminiVertex and AnthropicVertex (Google Cloud), OpenAICompatible (any such endpoint).',
      ),
    baseURL: httpUrl
      .optional()
      .describe(
        "Address of the OpenAI-compatible endpoint up to and with /v1: https://models.example.org/v1; required there. For the others scheme and host of a gateway in front of Google's, without a path; left out: Google's own.",
      ),
    apiKeySecretRef: secretKeyRef('model', 'the API key')
      .optional()
      .describe(
        'API key. Required for Gemini; for OpenAICompatible only where the endpoint wants one; refused for Vertex.',
      ),
    vertex: z
      .object({
        project: text(63, 1)
          .optional()
          .describe("Google Cloud project. Left out: the one of the operator's environment."),
        location: text(63, 1)
          .regex(/^[a-z][a-z0-9-]*$/, 'must be a Google Cloud location such as global or europe-west1')
          .default('global')
          .describe('Google Cloud location, default global.'),
        credentialsSecretRef: secretKeyRef('model', "a service account's key file")
          .optional()
          .describe("Service account key. Left out: the credentials of the operator's environment."),
      })
      .optional()
      .describe('Google Cloud project and location, for GeminiVertex and AnthropicVertex only.'),
    maxOutputTokens: z
      .int()
      .min(256)
      .max(1_000_000)
      .optional()
      .describe("Most tokens of one answer. Left out: the provider's own limit."),
    pricing: z
      .object({
        input: perMillion('input tokens'),
        output: perMillion('output tokens'),
        cacheRead: perMillion("input tokens read from the provider's cache").optional(),
        cacheWrite: perMillion("input tokens written to the provider's cache").optional(),
      })
      .optional()
      .describe('Prices of a model that the operator does not know. Without a price the cost stays unknown.'),
  }),
  {
    rule: "self.provider != 'OpenAICompatible' || has(self.baseURL)",
    message: 'model.baseURL is required when provider is OpenAICompatible',
    fieldPath: '.baseURL',
    reason: 'FieldValueRequired',
  },
  {
    rule: "self.provider == 'OpenAICompatible' || !has(self.baseURL) || self.baseURL.matches('^https?://[^/]+$')",
    message:
      'model.baseURL must be scheme and host only, such as https://gateway.example.org, unless provider is OpenAICompatible',
    fieldPath: '.baseURL',
  },
  {
    rule: "self.provider != 'Gemini' || has(self.apiKeySecretRef)",
    message:
      'model.apiKeySecretRef is required when provider is Gemini: name the Secret that holds the API key',
    fieldPath: '.apiKeySecretRef',
    reason: 'FieldValueRequired',
  },
  {
    rule: "!self.provider.endsWith('Vertex') || !has(self.apiKeySecretRef)",
    message:
      'model.apiKeySecretRef must be left out for Vertex providers: use model.vertex.credentialsSecretRef',
    fieldPath: '.apiKeySecretRef',
  },
  {
    rule: "self.provider.endsWith('Vertex') || !has(self.vertex)",
    message: 'model.vertex must be left out unless provider is GeminiVertex or AnthropicVertex',
    fieldPath: '.vertex',
  },
);
