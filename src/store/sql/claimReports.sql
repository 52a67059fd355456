-- The run $2 of a controller writes the reports of cluster $1. Returns whether another one has said so since this one last did; $3: whether it
-- ever did. Before its first time, it was whoever ran before.
INSERT INTO store.report_writer AS w (cluster_id, run, is_contested, at) VALUES ($1, $2, false, now())
ON CONFLICT (cluster_id) DO UPDATE SET is_contested = $3::bool AND w.run <> excluded.run, run = excluded.run, at = excluded.at
RETURNING is_contested AS "isContested"
