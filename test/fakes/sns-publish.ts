/** SNS over HTTP, as far as tests need it: emulators of it check no signature. Throws with the service's answer. */
export async function callSns(
  endpoint: string,
  parameters: Readonly<Record<string, string>>,
): Promise<string> {
  const body = new URLSearchParams({ Version: '2010-03-31', ...parameters });
  const answer = await fetch(endpoint, {
    method: 'POST',
    body,
    // An emulator of many services finds the one that is meant in here.
    headers: { authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sns/aws4_request` },
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`SNS: ${answer.status} ${text}`);
  return text;
}

/** Publishes to an SNS topic with message attributes, as a webhook forwarder does. Throws with the service's answer. */
export async function publishToTopic(
  endpoint: string,
  topicArn: string,
  message: string,
  attributes: Readonly<Record<string, string>>,
): Promise<void> {
  const parameters: Record<string, string> = { Action: 'Publish', TopicArn: topicArn, Message: message };
  for (const [at, [attribute, value]] of Object.entries(attributes).entries()) {
    const prefix = `MessageAttributes.entry.${at + 1}`;
    parameters[`${prefix}.Name`] = attribute;
    parameters[`${prefix}.Value.DataType`] = 'String';
    parameters[`${prefix}.Value.StringValue`] = value;
  }
  await callSns(endpoint, parameters);
}
