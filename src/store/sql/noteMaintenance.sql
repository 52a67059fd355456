-- Maintenance has done everything that was due.
UPDATE store.maintenance SET succeeded_at = now();
