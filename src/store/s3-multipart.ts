import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';

export interface MultipartUpload {
  readonly client: S3Client;
  readonly object: {
    readonly Bucket: string;
    readonly Key: string;
    readonly Metadata: Record<string, string>;
    readonly ContentType?: string;
  };
  /** Decided when the upload is completed: only then does the object exist. */
  readonly condition: { readonly IfNoneMatch?: string; readonly IfMatch?: string };
  readonly abort: { readonly abortSignal?: AbortSignal };
  readonly parts: AsyncIterable<Uint8Array>;
}

/** Part after part, so that memory holds two at the most. Gives the etag. A failed upload leaves no parts behind. */
export async function uploadParts({
  client,
  object,
  condition,
  abort,
  parts,
}: MultipartUpload): Promise<string | undefined> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(object), abort);
  const upload = { Bucket: object.Bucket, Key: object.Key, UploadId };
  try {
    const Parts: { PartNumber: number; ETag: string | undefined }[] = [];
    for await (const Body of parts) {
      const PartNumber = Parts.length + 1;
      const { ETag } = await client.send(new UploadPartCommand({ ...upload, PartNumber, Body }), abort);
      Parts.push({ PartNumber, ETag });
    }
    const complete = new CompleteMultipartUploadCommand({
      ...upload,
      ...condition,
      MultipartUpload: { Parts },
    });
    return (await client.send(complete, abort)).ETag;
  } catch (error) {
    // Best effort, and without the caller's signal: what stays is removed by the bucket's lifecycle rule.
    await client.send(new AbortMultipartUploadCommand(upload)).catch(() => undefined);
    throw error;
  }
}
