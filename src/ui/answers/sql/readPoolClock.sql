-- The clock of the database, and whether the minutes of the day of $1 are stored: they are deleted before the hours.
SELECT now() AS now,
       to_regclass(format('store.%I', store.partition_name('relist_minute', ($1::timestamptz AT TIME ZONE 'UTC')::date))) IS NOT NULL AS "hasMinutes";
