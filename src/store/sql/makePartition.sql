-- $1 table, $2 day since 1970
SELECT store.make_partition($1::text, date '1970-01-01' + $2::int4)
