-- Whether the current role may write a cluster, which need not exist yet. $1 name
SELECT current_user AS role,
       store.own_clusters(true) IS NULL
         OR cardinality(store.own_clusters(true)) > 0
            AND EXISTS (SELECT FROM store.cluster WHERE name = $1 AND cluster_id = ANY (store.own_clusters(true))) AS may
