-- Hashes of documents and passages, as records have them: what is read is what was written.
alter table document add column if not exists hash text collate "C";
alter table chunk add column if not exists hash text collate "C";
