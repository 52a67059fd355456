/*
 * A name in a table, cut by the style sheet where it is longer than most, so that it pushes no column out. The whole of it is in its title.
 */
import { visible } from '../text.ts';

export function Name({ text }: { readonly text: string }) {
  return (
    <span class="name" title={visible(text)}>
      {visible(text)}
    </span>
  );
}
