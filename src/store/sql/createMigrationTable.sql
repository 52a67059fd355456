-- The migrations that a database has, by the number in their file names, and the lowest schema version of programs that can use the
-- database after each.
CREATE SCHEMA IF NOT EXISTS store;
CREATE TABLE IF NOT EXISTS store.migration (number int4 PRIMARY KEY, hash text NOT NULL, compatible_since int4 NOT NULL);
