-- The upper bounds of the buckets of relist durations, in milliseconds.
SELECT store.hist_bounds() AS bounds;
