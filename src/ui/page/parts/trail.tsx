/*
 * The way back: from a view to what is above it.
 */
import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { FLEET, fragmentOf } from '../place.ts';
import { AccessContext } from './polling.ts';

export function Trail({ children }: { readonly children: ComponentChildren }) {
  const { isRecord } = useContext(AccessContext);
  return (
    <p class="trail soft">
      {!isRecord && (
        <>
          <a href={fragmentOf(FLEET)}>Fleet</a> <span aria-hidden="true">/</span>{' '}
        </>
      )}
      {children}
    </p>
  );
}
