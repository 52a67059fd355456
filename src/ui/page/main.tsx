/*
 * The page of `plegwatch ui`: draws what the server answers, and asks nobody else.
 */
import { render } from 'preact';
import { App } from './app.tsx';

const root = document.getElementById('page');
if (root === null) throw new Error('index.html and page.js are of different versions');
root.replaceChildren();
render(<App />, root);
