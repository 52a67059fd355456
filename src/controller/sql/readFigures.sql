-- Figures of cluster $1 that only the database knows. It runs four times a minute, so it reads only what is kept current, never a history.
--   maintained_at      when maintenance last succeeded, in seconds since 1970
--   oldest_due_s       for how long the report that is due the longest has been due; 0 if none is
--   records_lost       nodes with records of the last 24 hours missing by their report
--   coverage_low       nodes whose stream was not covered for more than a thousandth of them although it could have been
--   unproven           the same, but only because no event came that proves the stream
--   unhealthy          the ids of nodes that have reported that PLEG is not healthy and not yet that it recovered
SELECT (SELECT extract(epoch FROM succeeded_at)::float8 FROM store.maintenance) AS maintained_at,
       (SELECT coalesce(greatest(0, extract(epoch FROM now() - min(due_at))), 0)::float8
        FROM store.report_queue WHERE cluster_id = $1 AND due_at <= now()) AS oldest_due_s,
       count(*) FILTER (WHERE c.reason = 'RecordsLost')::int4 AS records_lost,
       count(*) FILTER (WHERE c.reason = 'CoverageLow' AND NOT c.is_unproven)::int4 AS coverage_low,
       count(*) FILTER (WHERE c.reason = 'CoverageLow' AND c.is_unproven)::int4 AS unproven,
       (SELECT coalesce(array_agg(n.node_id), '{}')
        FROM store.node n
        JOIN store.report r ON r.node_id = n.node_id AND r.node_deleted_at IS NULL
        WHERE n.cluster_id = $1 AND n.is_pleg_unhealthy) AS unhealthy
FROM store.report_condition c
JOIN store.report r ON r.node_id = c.node_id AND r.node_deleted_at IS NULL
WHERE c.cluster_id = $1 AND c.type = 'EvidenceComplete' AND c.status = 'False';
