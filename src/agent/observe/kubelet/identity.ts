/*
 * Whether it is this node's kubelet that answers. Decided from the connection alone, before anything is sent over it: the token goes
 * nowhere else.
 *
 *   Verified     a known authority signed the certificate, for this kubelet
 *   Unverified   no known authority signed it (kubeadm's and kind's kubelets sign their own), but the connection ends at an address of
 *                this node. Only with `auto`
 *   NotChecked   with `skip`, and for a plain http address, which can only be loopback
 *
 * An address of this node is that of an interface that this program sees, or one that the kubelet itself put into the pod's environment.
 * The address that the socket is connected to counts, whatever name led there. A packet from a pod to an address of its own node
 * is delivered by the node's kernel and does not leave it. docs/decisions/0025-kubelet-identity.md has the proof and its limits.
 *
 * The first certificate that cannot be verified is the only such one that is accepted while the agent runs, and none is after a verified
 * one: who takes the port of a kubelet over later gets nothing.
 */
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls';
import { ScrapeError } from './scrapeError.ts';
import type { KubeletAddress } from './settings.ts';

export const KUBELET_IDENTITIES = ['Verified', 'Unverified', 'NotChecked'] as const;
export type KubeletIdentity = (typeof KUBELET_IDENTITIES)[number];

export class IdentityCheck {
  readonly #address: KubeletAddress;
  /** The certificate that was accepted without verification, or that one was verified; null before. */
  #accepted: { readonly fingerprint: string } | 'verified' | null = null;

  constructor(address: KubeletAddress) {
    this.#address = address;
  }

  /**
   * The socket must be connected, its handshake done without checks of its own. `hasCa`: its chain was compared with authorities.
   * Throws ScrapeError if nothing may be sent over it.
   */
  accept(socket: TLSSocket, hasCa: boolean): KubeletIdentity {
    const { identity } = this.#address;
    if (identity === 'skip') return 'NotChecked';
    const certificate = socket.getPeerCertificate();
    if (hasCa && socket.authorized) {
      this.#checkName(certificate);
      this.#accepted = 'verified';
      return 'Verified';
    }
    const why = hasCa ? String(socket.authorizationError) : 'there is no authority to verify it with';
    if (identity === 'strict')
      throw new ScrapeError('Tls', `the kubelet's certificate is not verified: ${why}`);
    this.#checkAddress(socket.remoteAddress, why);
    this.#checkUnchanged(certificate.fingerprint256, why);
    return 'Unverified';
  }

  #checkName(certificate: PeerCertificate): void {
    const { url, serverName, node } = this.#address;
    const names = serverName === undefined ? [hostOf(url), node] : [serverName];
    if (names.some((name) => checkServerIdentity(name, certificate) === undefined)) return;
    // The signer of the API server for kubelets requires this subject.
    if (serverName === undefined && certificate.subject?.CN === `system:node:${node}`) return;
    const { subjectaltname = 'no name' } = certificate;
    throw new ScrapeError('Tls', `the certificate is for ${subjectaltname}, not for ${names.join(' or ')}`);
  }

  #checkAddress(address: string | undefined, why: string): void {
    if (address !== undefined && isOfThisNode(address, this.#address.hostIps)) return;
    throw new ScrapeError(
      'Tls',
      `the kubelet's certificate is not verified (${why}), and ${address} is no address of this node`,
    );
  }

  #checkUnchanged(fingerprint: string, why: string): void {
    this.#accepted ??= { fingerprint };
    if (this.#accepted === 'verified')
      throw new ScrapeError('Tls', `the kubelet's certificate is not verified (${why}); an earlier one was`);
    if (this.#accepted.fingerprint === fingerprint) return;
    throw new ScrapeError(
      'CertificateChanged',
      `the certificate is not the one that the agent first saw (${why}): if it was replaced on purpose, restart the agent`,
    );
  }
}

/** Without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

function isOfThisNode(address: string, hostIps: readonly string[]): boolean {
  const own = new BlockList();
  const seen = Object.values(networkInterfaces()).flatMap((interfaces) => interfaces ?? []);
  for (const each of [...hostIps, ...seen.map((one) => one.address)]) own.addAddress(each, familyOf(each));
  return own.check(address, familyOf(address));
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
