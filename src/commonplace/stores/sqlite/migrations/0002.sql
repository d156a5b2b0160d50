-- Who says a chunk, and when a job was last tried and ended.
alter table chunk add column speaker text not null default '';
alter table job add column started_at integer;
alter table job add column finished_at integer;
