-- The keys that a node signed with, and the controller's signatures under them. $1 node_id
SELECT public_key, signature FROM store.node_signer WHERE node_id = $1 ORDER BY enrolled_at
