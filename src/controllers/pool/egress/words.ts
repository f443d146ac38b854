import type { ProbeFinding } from '../../../sandbox/port.ts';

/** `Kubelet 10.0.0.7:10250/tcp: connected` */
export const inWords = ({ subject, where, detail }: ProbeFinding): string => `${subject} ${where}: ${detail}`;
