/*
 * Locks on the statuses of containers, as containerd has them: UpdateContainerResources holds that of its container until the shim answers
 * (internal/cri/server/container_update_resources.go), and ContainerStatus of this container and every list of containers wait for it.
 */
export class StatusLocks {
  readonly #held = new Set<string>();
  #waiting: { readonly id: string | null; readonly run: () => void }[] = [];

  hold(id: string): void {
    this.#held.add(id);
  }

  /** Runs what waited and no longer has to. */
  release(id: string): void {
    this.#held.delete(id);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) this.whenFree(each.id, each.run);
  }

  /** `id`: a container; null: all of them. */
  whenFree(id: string | null, run: () => void): void {
    const isHeld = id === null ? this.#held.size > 0 : this.#held.has(id);
    if (isHeld) this.#waiting.push({ id, run });
    else run();
  }
}
