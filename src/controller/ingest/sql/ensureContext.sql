-- $1 node_id, $2 epoch, $3 ctx_no, $4 runtime, $5 its version, $6 kubelet version, $7 agent version.
-- The epoch is locked by the caller: nobody else makes its contexts now. Whoever had the lock before may have made this one
-- after the caller's statement took its view of the store, and before it had the lock.
INSERT INTO store.context (node_id, epoch, ctx_no, runtime_name, runtime_version, kubelet_version, agent_version)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (node_id, epoch, ctx_no) DO UPDATE SET ctx_no = excluded.ctx_no
RETURNING ctx_id
