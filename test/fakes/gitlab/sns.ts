import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';

/**
 * The body of the SQS message that SNS makes of a forwarded webhook. GitLab's forwarder packs the message, the
 * Kubernetes one does not.
 */
export function snsEnvelope(
  message: unknown,
  options: { source?: string; eventType: string; encoding?: 'gzip+base64'; now?: Date; id?: string },
): string {
  const text = JSON.stringify(message);
  const attribute = (value: string) => ({ Type: 'String', Value: value });
  return JSON.stringify({
    Type: 'Notification',
    MessageId: options.id ?? randomUUID(),
    TopicArn: 'arn:aws:sns:us-east-1:000000000000:webhooks',
    Message: options.encoding === undefined ? text : gzipSync(text).toString('base64'),
    Timestamp: (options.now ?? new Date()).toISOString(),
    SignatureVersion: '1',
    Signature: 'c2lnbmF0dXJl',
    SigningCertURL: 'https://sns.us-east-1.example.org/cert.pem',
    UnsubscribeURL: 'https://sns.us-east-1.example.org/?Action=Unsubscribe',
    MessageAttributes: {
      source: attribute(options.source ?? 'gitlab'),
      event_type: attribute(options.eventType),
      ...(options.encoding === undefined ? {} : { content_encoding: attribute(options.encoding) }),
    },
  });
}
