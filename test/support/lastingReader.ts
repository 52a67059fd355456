/*
 * A reader that is not killed where a busy machine does not run it.
 */
import { type StartReader, startReaderProcess } from '../../src/agent/observe/stream/readerProcess.ts';
import { millis } from '../../src/protocol/units.ts';

export const startLastingReader: StartReader = (socket, events) =>
  startReaderProcess(socket, events, millis(3_600_000));
