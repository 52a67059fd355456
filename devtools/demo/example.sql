-- Would Evented PLEG be safe on these nodes? How many of the events that were due were announced, how many could not be observed?
SELECT n.node, n.runtime_name || ' ' || n.runtime_version AS runtime, n.stream_state AS stream,
       sum(m.expected) AS due, sum(m.matched) AS announced, sum(m.unobservable) AS unobservable
FROM plegwatch.nodes n LEFT JOIN plegwatch.relist_minutes m USING (cluster, node)
WHERE n.cluster = 'demo'
GROUP BY 1, 2, 3 ORDER BY 1;
