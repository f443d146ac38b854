/** Publishes to an SNS topic with message attributes, as a webhook forwarder does. Throws with the service's answer. */
export async function publishToTopic(
  endpoint: string,
  topicArn: string,
  message: string,
  attributes: Readonly<Record<string, string>>,
): Promise<void> {
  const form = new URLSearchParams({
    Action: 'Publish',
    Version: '2010-03-31',
    TopicArn: topicArn,
    Message: message,
  });
  for (const [at, [attribute, value]] of Object.entries(attributes).entries()) {
    const prefix = `MessageAttributes.entry.${at + 1}`;
    form.set(`${prefix}.Name`, attribute);
    form.set(`${prefix}.Value.DataType`, 'String');
    form.set(`${prefix}.Value.StringValue`, value);
  }
  const answer = await fetch(endpoint, { method: 'POST', body: form });
  if (!answer.ok) throw new Error(`SNS: ${answer.status} ${await answer.text()}`);
}
