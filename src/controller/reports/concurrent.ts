/** Works on at most `limit` items at a time. After an error it starts no more, waits for those under way, and throws the first error. */
export async function forEachConcurrent<T>(
  limit: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = [...items];
  const worker = async () => {
    try {
      for (let item = remaining.shift(); item !== undefined; item = remaining.shift()) await work(item);
    } catch (error) {
      remaining.length = 0;
      throw error;
    }
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, worker));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
