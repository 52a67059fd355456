/*
 * The requirements of a dynamically linked program: its architecture, its loader and its libraries (64 bits, little-endian). Read from the file
 * instead of with ldd, which runs the program and so cannot answer for another architecture.
 */
export interface ElfFile {
  /** e_machine. */
  readonly machine: number;
  /** The absolute path of the loader; libraries have none. */
  readonly loader: string | undefined;
  /** The names of the libraries, as the loader searches for them. */
  readonly libraries: readonly string[];
}

const PROGRAM_LOAD = 1;
const PROGRAM_DYNAMIC = 2;
const PROGRAM_LOADER = 3;
const DYNAMIC_LIBRARY = 1;
const DYNAMIC_STRINGS = 5;

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

export function readElf(file: Buffer): ElfFile {
  if (file.readUInt32BE(0) !== 0x7f454c46 || file[4] !== 2 || file[5] !== 1) {
    throw new Error('not a 64-bit little-endian ELF file');
  }
  const segments = readSegments(file);
  const dynamic = segments.find(({ type }) => type === PROGRAM_DYNAMIC);
  const loader = segments.find(({ type }) => type === PROGRAM_LOADER);
  return {
    machine: file.readUInt16LE(18),
    loader: loader && text(file, loader.offset),
    libraries: dynamic === undefined ? [] : readLibraries(file, dynamic, segments),
  };
}

function readSegments(file: Buffer): Segment[] {
  const start = number(file, 32);
  const size = file.readUInt16LE(54);
  return Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const at = start + index * size;
    return {
      type: file.readUInt32LE(at),
      offset: number(file, at + 8),
      address: number(file, at + 16),
      size: number(file, at + 32),
    };
  });
}

function readLibraries(file: Buffer, dynamic: Segment, segments: readonly Segment[]): string[] {
  const names: number[] = [];
  let strings = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16) {
    const tag = number(file, at);
    if (tag === DYNAMIC_LIBRARY) names.push(number(file, at + 8));
    if (tag === DYNAMIC_STRINGS) strings = number(file, at + 8);
  }
  const holder = segments.find(
    ({ type, address, size }) => type === PROGRAM_LOAD && strings >= address && strings < address + size,
  );
  if (holder === undefined) throw new Error('an ELF file without its strings');
  return names.map((name) => text(file, strings - holder.address + holder.offset + name));
}

const number = (file: Buffer, at: number): number => Number(file.readBigUInt64LE(at));
const text = (file: Buffer, at: number): string => file.toString('latin1', at, file.indexOf(0, at));
