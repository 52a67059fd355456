/*
 * Malformed: what a runtime sent and nobody can read. It is refused at the door, with a code; the socket may be anybody's.
 */
import type { MessageFns } from './runtime.ts';

/**
 * The longest message that tells of one pod or one container: an item of a list, an event, a status. An object of the API
 * server has at most 1.5 MiB. Decoded, small fields take a hundred times their bytes.
 */
export const MAX_ITEM_BYTES = 4 * 1024 * 1024;

/** The bytes are not what the protocol says, or more of it than can be true. */
export class MalformedMessage extends Error {
  override readonly name = 'MalformedMessage';
  readonly code = 'MALFORMED';
}

/** Decodes a message about one thing. Throws {@link MalformedMessage}, whatever the bytes are. */
export function decode<T>(type: Pick<MessageFns<T>, 'decode'>, bytes: Uint8Array): T {
  if (bytes.length > MAX_ITEM_BYTES) throw new MalformedMessage(`a message of ${bytes.length} bytes`);
  try {
    return type.decode(bytes);
  } catch (cause) {
    throw new MalformedMessage(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
