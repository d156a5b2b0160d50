-- What a search asks of an entry lies in the index: the rows, which hold all their words, are not read for it.
drop index entry_bucket;
create index entry_bucket on entry (bucket) include (id, length, expires, kind, category);
