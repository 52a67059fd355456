-- $1 node_id, $2 epoch, $3 ctx_no, $4 runtime, $5 its version, $6 kubelet version, $7 agent version.
-- The epoch is locked by the caller: nobody else makes its contexts now.
INSERT INTO store.context (node_id, epoch, ctx_no, runtime_name, runtime_version, kubelet_version, agent_version)
VALUES ($1, $2, $3, $4, $5, $6, $7)
RETURNING ctx_id
