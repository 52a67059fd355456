/*
 * Malformed messages: what a runtime sent and cannot be decoded. Any program may own the socket.
 */
import type { MessageFns } from './runtime.ts';

/**
 * The longest message about one pod or container: an item of a list, an event, a status. An object of the API server has at most
 * 1.5 MiB. Small fields take a hundred times their bytes when decoded.
 */
export const MAX_ITEM_BYTES = 4 * 1024 * 1024;

/** The bytes do not follow the protocol, or are too many. */
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
