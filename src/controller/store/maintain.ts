import type { Logger } from '../../log.ts';
export async function maintain(_: { databaseUrl: string; log: Logger }): Promise<void> {}
