-- Cancels the statements of this role that begin with a text and have waited for a lock for longer than that.
-- $1 how the text begins, $2 milliseconds
SELECT pg_cancel_backend(a.pid) AS cancelled
FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND NOT l.granted
WHERE a.datname = current_database() AND a.usename = session_user AND a.state = 'active' AND starts_with(a.query, $1)
  AND l.waitstart < clock_timestamp() - $2::int4 * interval '1 ms'
