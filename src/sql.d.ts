/** A `.sql` file imported as text, by the bundler and by the test runner alike. */
declare module '*.sql' {
  const text: string;
  export default text;
}
