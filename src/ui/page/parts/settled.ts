/*
 * A value once it stays: not each letter of a search, nor each step of a zoom, asks the server.
 */
import { useEffect, useState } from 'preact/hooks';

export function useSettled<T>(value: T, pauseMs: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
