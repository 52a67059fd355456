/*
 * Why a scrape of the kubelet failed.
 */

/**
 * `Tls`: the certificate is not that of this node's kubelet. `CertificateChanged`: it was another one before, and neither can be verified.
 * `Credentials`: the token or a CA file cannot be read or parsed. `NotMetrics`: what answers is no kubelet. `BadStatus`: any other status than 200.
 */
export const SCRAPE_FAILURES = [
  'Unreachable',
  'Timeout',
  'Tls',
  'CertificateChanged',
  'Credentials',
  'Unauthorized',
  'Forbidden',
  'Redirect',
  'BadStatus',
  'TooLarge',
  'NotMetrics',
] as const;
export type ScrapeFailure = (typeof SCRAPE_FAILURES)[number];

export class ScrapeError extends Error {
  readonly reason: ScrapeFailure;

  constructor(reason: ScrapeFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
