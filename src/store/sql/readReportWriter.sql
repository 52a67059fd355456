-- Whether two controllers say at present that they write the reports of the cluster named $1: each says so every 10 s.
SELECT w.is_contested AS "isContested"
FROM store.report_writer w JOIN store.cluster c USING (cluster_id)
WHERE c.name = $1 AND w.at > now() - interval '2 minutes'
