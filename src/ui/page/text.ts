/*
 * Times and counts as people read them, and texts that nobody has checked. All times are in UTC, as in every other output.
 */
import { duration } from '../../analysis/words.ts';

/** Milliseconds since 1970, with the microseconds as a fraction. */
export function msOf(time: string): number {
  const micros = /\.\d{3}(\d{1,3})/.exec(time)?.[1];
  return Date.parse(time) + (micros === undefined ? 0 : Number(micros.padEnd(3, '0')) / 1000);
}

/** 2026-11-22 03:12:00 */
export const moment = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');

/** 2026-11-22 03:12 – 2026-11-23 03:12 UTC */
export const periodInWords = ({ from, to }: { readonly from: string; readonly to: string }): string =>
  `${[from, to].map((at) => moment(msOf(at)).slice(0, 16)).join(' – ')} UTC`;

/** 03:12:00.250 */
export const clock = (ms: number): string => new Date(ms).toISOString().slice(11, 23);

/** How long ago something was, of which a clock that is ahead makes now. */
export const ago = (ms: number): string => (ms < 1000 ? 'now' : `${duration(ms)} ago`);

/** 12,345 */
export const count = (n: number): string => n.toLocaleString('en-US', { maximumFractionDigits: 0 });

/** `1 node`, `2 nodes` */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;

/** 99.98 %, never rounded up to 100 %. */
export function share(part: number): string {
  const floored = Math.floor(part * 10_000) / 100;
  return `${floored >= 99.995 ? '100' : floored.toFixed(floored >= 99 ? 2 : 1)} %`;
}

/**
 * A text from a node, a pod or a runtime. Characters that are invisible, or turn the text around them, are shown as escapes; letters of every script
 * stay.
 */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    [...character].map((each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`).join(''),
  );

/** The first twelve characters of an id, as crictl shows it. */
export const shortId = (id: string): string => visible(id.length > 16 ? id.slice(0, 12) : id);

/** A text in lines of this many characters, broken between words; what is left after the last one is cut. */
export function linesOf(text: string, room: number, most: number): string[] {
  const characters = Math.floor(room);
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    const isFull = last === undefined || (last.length + word.length >= characters && lines.length < most);
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => cutTo(line, characters));
}

/** A text that is too long ends with an ellipsis. */
export const cutTo = (text: string, characters: number): string =>
  text.length > characters ? `${text.slice(0, Math.max(1, Math.floor(characters) - 1))}…` : text;
