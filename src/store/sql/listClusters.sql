-- The clusters that the role may read, and whether there are nodes of them.
SELECT c.name, EXISTS (SELECT FROM store.node n WHERE n.cluster_id = c.cluster_id) AS "hasNodes" FROM store.cluster c
