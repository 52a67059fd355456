-- Would Evented PLEG be safe here? Of what was due and could be observed, how much did the stream announce?
SELECT m.node, n.runtime_name || ' ' || n.runtime_version AS runtime, n.stream_state AS stream,
       sum(m.expected) AS due, sum(m.matched) AS announced, sum(m.unobservable) AS unobservable
FROM plegwatch.relist_minutes m JOIN plegwatch.nodes n USING (cluster, node)
WHERE m.cluster = 'demo'
GROUP BY 1, 2, 3 ORDER BY 1;
