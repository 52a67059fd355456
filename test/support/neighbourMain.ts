/*
 * A subscriber of a runtime's events, in a process of its own so that a test can freeze it. Prints a line for each event.
 *
 *   node neighbourMain.ts <socket>
 */
import { connectCri } from '../../devtools/simulator/criClient.ts';

const socket = process.argv[2];
if (socket === undefined) throw new Error('usage: neighbourMain <socket>');
connectCri(socket)
  .events()
  .on('data', () => process.stdout.write('event\n'))
  .on('error', () => process.exit(1));
