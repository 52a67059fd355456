/*
 * Characters that a terminal obeys, or that hide or turn the text around them, as escapes such as \u001b. In a JSON text they stay the same
 * characters.
 */

/** Letters of every script stay. */
export const escapeControls = (text: string): string =>
  text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, (character) =>
    character.split('').map(escapeOf).join(''),
  );

const escapeOf = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
