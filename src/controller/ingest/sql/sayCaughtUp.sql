-- Everything that agents of cluster $1 sent is stored at once, and has been for $2 ms; for longer if another controller said so lately.
INSERT INTO store.ingest AS i (cluster_id, caught_up_since, said_at)
VALUES ($1, now() - $2 * interval '1 millisecond', now())
ON CONFLICT (cluster_id) DO UPDATE SET said_at = excluded.said_at, caught_up_since =
  CASE WHEN i.said_at > now() - interval '30 seconds' THEN least(i.caught_up_since, excluded.caught_up_since) ELSE excluded.caught_up_since END;
