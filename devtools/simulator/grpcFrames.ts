/*
 * The messages of a gRPC stream: each has one byte of flags, four bytes of length, and the payload.
 */
const PREFIX_BYTES = 5;
const COMPRESSED = 1;

export interface GrpcFrame {
  /** Prefix and payload. */
  readonly bytes: Buffer;
  readonly payload: Buffer;
  readonly compressed: boolean;
}

/** Splits the chunks of one stream into messages; an incomplete message waits for the next chunk. */
export class FrameSplitter {
  #chunks: Buffer[] = [];
  #length = 0;
  #wanted = PREFIX_BYTES;

  push(chunk: Buffer): GrpcFrame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    // The chunks of a large message are concatenated only once, when it is complete.
    if (this.#length < this.#wanted) return [];
    const all = Buffer.concat(this.#chunks);
    const frames: GrpcFrame[] = [];
    let at = 0;
    let wanted = wantedAt(all, at);
    while (all.length - at >= wanted && wanted > 0) {
      const bytes = all.subarray(at, at + wanted);
      frames.push({ bytes, payload: bytes.subarray(PREFIX_BYTES), compressed: bytes[0] === COMPRESSED });
      at += wanted;
      wanted = wantedAt(all, at);
    }
    this.#chunks = [all.subarray(at)];
    this.#length = all.length - at;
    this.#wanted = Math.max(wanted, PREFIX_BYTES);
    return frames;
  }
}

/** The size of the message that begins here; 0 while its prefix is incomplete. */
function wantedAt(all: Buffer, at: number): number {
  return all.length - at < PREFIX_BYTES ? 0 : PREFIX_BYTES + all.readUInt32BE(at + 1);
}
