/** The wire format and the directory, for both ends. Fixed in PROTOCOL.md; imports nothing of ours. */
export * from './directory.ts';
export * from './errors.ts';
export * from './events.ts';
export * from './file-version.ts';
export * from './frames.ts';
export * from './handshake.ts';
export * from './limits.ts';
export * from './number.ts';
export * from './path.ts';
export * from './request-reader.ts';
export * from './status.ts';
export * from './thrift-table.ts';
export * from './verbs-endpoint.ts';
export * from './verbs-messages.ts';
