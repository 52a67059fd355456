/*
 * A stream of JSON values, one a line, as the API server sends a watch.
 */

/** A watch event of an object near etcd's limit, with room to spare. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Yields each line's value. Throws on a line that is not JSON or is longer than 8 MiB; a last line without its end is dropped. */
export async function* jsonLines(
  parts: AsyncIterable<Buffer>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<unknown> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const part of parts) {
    let rest = part;
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...held, rest.subarray(0, end)]).toString('utf8');
      held = [];
      bytes = 0;
      rest = rest.subarray(end + 1);
      if (line.trim() !== '') yield JSON.parse(line);
    }
    if (rest.length > 0) held.push(rest);
    bytes += rest.length;
    if (bytes > maxBytes) throw new Error(`a line is longer than ${maxBytes} bytes`);
  }
}
