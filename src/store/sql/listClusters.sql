-- The clusters whose rows this role may read.
SELECT name FROM store.cluster ORDER BY name COLLATE "C";
