/*
 * The name of an image with its registry, as containerd and the kubelet complete a short one.
 */
export function fullName(short: string): string {
  const [first = '', ...more] = short.split('/');
  if (more.length === 0) return `docker.io/library/${short}`;
  return /[.:]|^localhost$/.test(first) ? short : `docker.io/${short}`;
}
