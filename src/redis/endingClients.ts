/*
 * Clients of ioredis whose commands all end: when their time is over, and when the client is disconnected. Those of ioredis may be kept or tried again
 * without an end, and then BullMQ waits for them.
 */
import { Cluster, Redis } from 'ioredis';

/** The client sends its commands when it has connected again, also those that have ended: a fetch would take a job that nobody handles. */
export class EndingRedis extends Redis {
  override sendCommand(...sent: Parameters<Redis['sendCommand']>): unknown {
    const [command] = sent;
    if (command.isSettled) return command.promise;
    dropEnded(this);
    return super.sendCommand(...sent);
  }

  override disconnect(reconnect = false): void {
    const keepsCommands = isBetweenTries(this);
    super.disconnect(reconnect);
    if (keepsCommands && !reconnect) this.connect().then(() => super.disconnect(), ignored);
  }
}

/** The client counts the time of a command from when a node gets it, and keeps some for a node that it does not find. */
export class EndingCluster extends Cluster {
  override sendCommand(...sent: Parameters<Cluster['sendCommand']>): unknown {
    const [command] = sent;
    if (command.isSettled) return command.promise;
    dropEnded(this);
    const { commandTimeout } = this.options.redisOptions ?? {};
    if (commandTimeout !== undefined) command.setTimeout(commandTimeout);
    const answer = super.sendCommand(...sent);
    // The client tries a command that a node refused again, also one that has ended.
    const { reject } = command;
    command.reject = (error) => {
      if (!command.isSettled) reject(error);
    };
    return answer;
  }

  override disconnect(reconnect = false): void {
    const keepsCommands = isBetweenTries(this);
    // The client takes itself for one that will connect again when the last of several nodes has ended.
    if (!reconnect) this.options.enableOfflineQueue = false;
    super.disconnect(reconnect);
    if (keepsCommands && !reconnect) this.connect().then(() => super.disconnect(), ignored);
  }
}

/** Commands that wait for a connection, in the order in which they were sent. */
interface WaitingCommands {
  peekFront(): { readonly command: { readonly isSettled: boolean } } | undefined;
  shift(): unknown;
}

/** The client keeps commands that have ended until it connects: in an outage of days more and more. Those of a client end in their order. */
function dropEnded(client: Redis | Cluster): void {
  const waiting: WaitingCommands = Reflect.get(client, 'offlineQueue');
  while (waiting.peekFront()?.command.isSettled === true) waiting.shift();
}

/** Whether a patient client waits before it tries to connect again. To disconnect it then leaves its commands without an end; one more try ends them. */
const isBetweenTries = ({ status, options }: Redis | Cluster): boolean =>
  status === 'reconnecting' && options.enableOfflineQueue === true;

const ignored = (): void => undefined;
