/** Where a publisher's models are asked on Vertex AI. */
export interface VertexPlace {
  readonly project: string;
  /** `global`, a multi-region (`us`, `eu`) or a region such as `europe-west1`. */
  readonly location: string;
  /** Instead of Google's host, e.g. a private endpoint: scheme and authority, without a path. */
  readonly origin?: string;
}

export function vertexUrl(
  place: VertexPlace,
  publisher: 'google' | 'anthropic',
  model: string,
  method: 'generateContent' | 'rawPredict',
): string {
  const { project, location, origin = vertexOrigin(location) } = place;
  const path = [
    ['projects', project],
    ['locations', location],
    ['publishers', publisher],
    // `@` before a version is written as it is by the API's own examples.
    ['models', encodeURIComponent(model).replaceAll('%40', '@')],
  ]
    .flat()
    .join('/');
  return `${origin.replace(/\/+$/, '')}/v1/${path}:${method}`;
}

/** Global, multi-regional and regional endpoints follow three different patterns; a wrong host is a bare 400. */
function vertexOrigin(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com';
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`;
  return `https://${location}-aiplatform.googleapis.com`;
}

/** What people can do about Vertex's refusals. */
export function adviseOnVertex(status: number | undefined, location: string): string {
  switch (status) {
    case 401:
      return 'Check the Google Cloud credentials of the workflow (model.vertex.credentialsSecretRef) or of the operator.';
    case 403:
      return 'Check that the Vertex AI API is enabled in the project and that the account may use it (role roles/aiplatform.user).';
    case 404:
      return `Check the model name, and that the model is offered at location ${location} (model.vertex.location).`;
    default:
      return '';
  }
}
