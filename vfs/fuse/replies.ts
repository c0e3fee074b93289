/** Sends replies through a binding: headers in one buffer that is used again, data as views that are not copied. */
import { Errno } from '../errno.ts';
import type { FuseBinding, Sent } from './binding.ts';
import { REPLY_PARTS_MAX } from './limits.ts';
import { SizeOf } from './protocol.ts';
import { writeOutHeader } from './reply.ts';

export class Replies {
  /** Errors that were answered, by number. */
  readonly errors = new Map<number, number>();
  /** Answers that the kernel did not want any more. */
  unwanted = 0;
  readonly #binding: FuseBinding;
  readonly #header = new Uint8Array(SizeOf.fuse_out_header);
  readonly #view = new DataView(this.#header.buffer);

  constructor(binding: FuseBinding) {
    this.#binding = binding;
  }

  /** An error by its positive number, or 0 for an answer without a body. */
  status(unique: number, errno: number): Sent {
    if (errno !== 0) this.errors.set(errno, (this.errors.get(errno) ?? 0) + 1);
    return this.#send(unique, errno, [], 0);
  }

  body(unique: number, body: Uint8Array): Sent {
    return this.#send(unique, 0, [body], body.byteLength);
  }

  /** `length` is what the views sum up to. */
  views(unique: number, views: readonly Uint8Array[], length: number): Sent {
    return this.#send(unique, 0, views.length > REPLY_PARTS_MAX ? [Buffer.concat(views, length)] : views, length);
  }

  #send(unique: number, errno: number, parts: readonly Uint8Array[], length: number): Sent {
    writeOutHeader(this.#view, this.#header.byteLength + length, errno, unique);
    const sent = this.#binding.send([this.#header, ...parts]);
    if (sent === 'unknown') this.unwanted++;
    // who asked is still waiting
    if (sent === 'refused' && errno === 0) this.status(unique, Errno.EIO);
    return sent;
  }
}
