/*
 * The settings of `plegwatch mcp`. Which clusters can be read is a right of the database's role.
 */
import { logLevelFrom } from '../platform/commonSettings.ts';
import type { ConfigOf } from '../platform/settings.ts';
import { DATABASE_SETTINGS } from '../store/settings.ts';
import { UI_SETTINGS } from '../ui/settings.ts';

export const MCP_SETTINGS = {
  ...DATABASE_SETTINGS,
  databaseMaxConnections: UI_SETTINGS.databaseMaxConnections,
  logLevel: logLevelFrom('warn'),
} as const;

export type McpConfig = ConfigOf<typeof MCP_SETTINGS>;
