-- Times of the future, from before they were refused or from a clock that was wrong: no retention would ever take such a row, and nothing after
-- them would count. Records may be dated three days ahead.
UPDATE store.gap SET
  from_at = least(from_at, now()),
  to_at = CASE WHEN to_at IS NOT NULL THEN least(to_at, now()) END
WHERE greatest(from_at, to_at) > now() + interval '4 days';

UPDATE store.epoch SET
  last_batch_at = CASE WHEN last_batch_at IS NOT NULL THEN least(last_batch_at, last_stored_at) END,
  last_record_at = CASE WHEN last_record_at IS NOT NULL THEN least(last_record_at, last_stored_at) END,
  complete_through = CASE WHEN complete_through IS NOT NULL THEN least(complete_through, last_stored_at) END,
  decided_through = CASE WHEN decided_through IS NOT NULL THEN least(decided_through, last_stored_at) END,
  kubelet_seen_to = CASE WHEN kubelet_seen_to IS NOT NULL THEN least(kubelet_seen_to, last_stored_at) END,
  delay_us = NULL,
  last_seen = least(last_seen, last_stored_at)
WHERE greatest(last_batch_at, last_record_at, complete_through, decided_through, kubelet_seen_to, last_seen) > now() + interval '4 days';
