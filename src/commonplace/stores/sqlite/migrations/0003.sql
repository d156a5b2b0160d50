-- Codes of vectors (signatures.py), in the order in which a search reads them: one scope after the other, with what a
-- filter asks for beside each.  And the vectors of another embedder, while they are built beside those in use.

create table code (
  bucket   integer not null,
  id       integer not null,
  expires  integer,
  kind     text,
  category text,
  data     blob not null,
  primary key (bucket, id)
) strict, without rowid;

create table beside (
  entry integer primary key,
  data  blob not null,
  code  blob not null
) strict;

drop index vector_bucket;

create trigger code_follows after update on entry
when (old.bucket, old.expires, old.kind, old.category) is not (new.bucket, new.expires, new.kind, new.category) begin
  update code set bucket = new.bucket, expires = new.expires, kind = new.kind, category = new.category
   where bucket = old.bucket and id = new.id;
end;

create trigger vector_gone after delete on vector begin
  delete from code where bucket = old.bucket and id = old.entry;
end;

create trigger beside_gone after delete on entry begin
  delete from beside where entry = old.id;
end;
