/*
 * A stream of JSON values, one per line: the format of a watch.
 */

/** A watch event of an object near etcd's size limit fits. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Yields the value of each line. Throws on a line that is not JSON or is longer than 8 MiB; drops an unterminated last line. */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<unknown> {
  let pending: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let remaining = chunk;
    for (let end = remaining.indexOf(NEWLINE); end !== -1; end = remaining.indexOf(NEWLINE)) {
      const line = Buffer.concat([...pending, remaining.subarray(0, end)]).toString('utf8');
      pending = [];
      bytes = 0;
      remaining = remaining.subarray(end + 1);
      if (line.trim() !== '') yield JSON.parse(line);
    }
    if (remaining.length > 0) pending.push(remaining);
    bytes += remaining.length;
    if (bytes > maxBytes) throw new Error(`a line is longer than ${maxBytes} bytes`);
  }
}
