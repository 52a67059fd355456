/** Files imported as text, by the bundler and by the test runner alike. */
declare module '*.sql' {
  const text: string;
  export default text;
}
declare module '*.md' {
  const text: string;
  export default text;
}
