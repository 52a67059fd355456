-- The migrations that a database has, by the number in their file names.
CREATE SCHEMA IF NOT EXISTS store;
CREATE TABLE IF NOT EXISTS store.migration (number int4 PRIMARY KEY, hash text NOT NULL);
