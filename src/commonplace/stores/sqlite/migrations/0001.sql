-- Scopes, records with their earlier versions, full text, vectors, documents, mirrored files and jobs.
--
-- Times are whole microseconds since 1970 in UTC.  `entry` is what a search reads: one narrow row for each thing that
-- can be found.  Its id is the row of the thing times four, plus 0 for a record, 1 for a chunk, 2 for an earlier version.
-- Its bucket is its scope times four, plus 0 for live records, 1 for chunks, 2 for earlier versions, 3 for archived and
-- held records.  Every term in the index begins with its bucket, so that one scope's statistics never see another's.

create table meta (key text primary key, value any) strict, without rowid;

-- An id is never used again: a cached number must not come to mean another scope.
create table scope (
  id     integer primary key autoincrement,
  parent integer references scope (id) on delete cascade,
  path   text not null unique
) strict;
create index scope_parent on scope (parent);

create table record (
  row             integer primary key,
  id              text not null unique,
  scope           integer not null references scope (id) on delete cascade,
  kind            text not null,
  category        text not null,
  content         text not null,
  key             text,
  value           text,
  tags            text not null,
  metadata        text not null,
  channel         text not null,
  ref             text,
  parents         text not null,
  trust           integer not null,
  pinned          integer not null,
  version         integer not null,
  created_at      integer not null,
  updated_at      integer not null,
  occurred_at     integer,
  expires_at      integer,
  archived_at     integer,
  superseded_by   text,
  held            integer not null,
  consolidated_at integer,
  valid_from      integer not null,
  digest          text not null,
  hash            text not null,
  terms           text not null,
  length          integer not null
) strict;
create unique index record_key on record (scope, kind, key) where key is not null and archived_at is null and held = 0;
create index record_listed on record (scope, created_at, id);
create index record_same on record (scope, kind, digest) where archived_at is null;

create table version (
  row             integer primary key,
  record          integer not null references record (row) on delete cascade,
  id              text not null,
  scope           integer not null,
  kind            text not null,
  category        text not null,
  content         text not null,
  key             text,
  value           text,
  tags            text not null,
  metadata        text not null,
  channel         text not null,
  ref             text,
  parents         text not null,
  trust           integer not null,
  pinned          integer not null,
  version         integer not null,
  created_at      integer not null,
  updated_at      integer not null,
  occurred_at     integer,
  expires_at      integer,
  archived_at     integer,
  superseded_by   text,
  held            integer not null,
  consolidated_at integer,
  valid_from      integer not null,
  digest          text not null,
  hash            text not null,
  terms           text not null,
  length          integer not null,
  unique (record, version)
) strict;
create index version_scope on version (scope);

create table usage (
  record           integer primary key references record (row) on delete cascade,
  recalls          integer not null,
  last_recalled_at integer
) strict;

create table tag (
  record integer not null references record (row) on delete cascade,
  tag    text not null,
  primary key (record, tag)
) strict, without rowid;
create index tag_named on tag (tag, record);

create table parent (
  record integer not null references record (row) on delete cascade,
  parent text not null,
  primary key (record, parent)
) strict, without rowid;
create index parent_of on parent (parent, record);

create table document (
  row        integer primary key,
  scope      integer not null references scope (id) on delete cascade,
  kind       text not null,
  name       text not null,
  digest     text not null,
  content    text,
  metadata   text not null,
  channel    text not null,
  ref        text,
  parents    text not null,
  trust      integer not null,
  created_at integer not null,
  updated_at integer not null,
  unique (scope, kind, name)
) strict;

create table chunk (
  row         integer primary key,
  document    integer not null references document (row) on delete cascade,
  scope       integer not null,
  seq         integer not null,
  ref         text not null,
  text        text not null,
  occurred_at integer,
  trust       integer not null,
  terms       text not null,
  length      integer not null,
  unique (document, seq)
) strict;

create table file (
  folder  text not null,
  path    text not null,
  record  text not null,
  version integer not null,
  digest  text not null,
  stamp   integer not null,
  primary key (folder, path)
) strict, without rowid;
create index file_record on file (folder, record);

create table job (
  scope       integer not null references scope (id) on delete cascade,
  kind        text not null,
  key         text not null,
  status      text not null,
  token       text,
  lease_until integer,
  retry_at    integer,
  tries_left  integer not null,
  error       text,
  input       integer not null,
  done        integer,
  primary key (scope, kind, key)
) strict, without rowid;

-- What a search reads.

create table bucket (id integer primary key, docs integer not null, length integer not null) strict;

create table entry (
  id       integer primary key,
  bucket   integer not null,
  length   integer not null,
  expires  integer,
  kind     text,
  category text
) strict;

create table vector (
  entry  integer primary key,
  bucket integer not null,
  data   blob not null
) strict;
create index vector_bucket on vector (bucket);

create view entry_terms (id, bucket, terms) as
  select row * 4, bucket, iif(terms = '', '', replace(' ' || terms, ' ', ' ' || bucket || ':'))
    from (select row, terms, scope * 4 + iif(archived_at is null and held = 0, 0, 3) as bucket from record)
  union all
  select row * 4 + 1, bucket, iif(terms = '', '', replace(' ' || terms, ' ', ' ' || bucket || ':'))
    from (select row, terms, scope * 4 + 1 as bucket from chunk)
  union all
  select row * 4 + 2, bucket, iif(terms = '', '', replace(' ' || terms, ' ', ' ' || bucket || ':'))
    from (select row, terms, scope * 4 + 2 as bucket from version);

-- Terms come ready made from the engine (words.py), so the tokenizer only has to keep them whole.
create virtual table entry_fts using fts5 (
  terms, content = 'entry_terms', content_rowid = 'id', columnsize = 0,
  tokenize = "ascii tokenchars '_-./:@#+'"
);
insert into entry_fts (entry_fts, rank) values ('secure-delete', 1);
create virtual table entry_at using fts5vocab ('entry_fts', 'instance');

-- `entry` leads: whatever enters or leaves it, the index, the statistics and the vector follow.

create trigger record_added after insert on record begin
  insert into entry values (new.row * 4, new.scope * 4 + iif(new.archived_at is null and new.held = 0, 0, 3),
                            new.length, new.expires_at, new.kind, new.category);
  insert into entry_fts (rowid, terms) values (new.row * 4, iif(new.terms = '', '', replace(' ' || new.terms, ' ',
    ' ' || (new.scope * 4 + iif(new.archived_at is null and new.held = 0, 0, 3)) || ':')));
end;

create trigger record_changed after update on record begin
  update entry set bucket = new.scope * 4 + iif(new.archived_at is null and new.held = 0, 0, 3), length = new.length,
                   expires = new.expires_at, kind = new.kind, category = new.category
   where id = new.row * 4;
end;

create trigger record_reworded after update on record
when old.terms is not new.terms
  or (old.archived_at is null and old.held = 0) is not (new.archived_at is null and new.held = 0) begin
  insert into entry_fts (entry_fts, rowid, terms) values ('delete', old.row * 4, iif(old.terms = '', '',
    replace(' ' || old.terms, ' ', ' ' || (old.scope * 4 + iif(old.archived_at is null and old.held = 0, 0, 3)) || ':')));
  insert into entry_fts (rowid, terms) values (new.row * 4, iif(new.terms = '', '', replace(' ' || new.terms, ' ',
    ' ' || (new.scope * 4 + iif(new.archived_at is null and new.held = 0, 0, 3)) || ':')));
end;

create trigger record_gone after delete on record begin
  insert into entry_fts (entry_fts, rowid, terms) values ('delete', old.row * 4, iif(old.terms = '', '',
    replace(' ' || old.terms, ' ', ' ' || (old.scope * 4 + iif(old.archived_at is null and old.held = 0, 0, 3)) || ':')));
  delete from entry where id = old.row * 4;
end;

create trigger chunk_added after insert on chunk begin
  insert into entry values (new.row * 4 + 1, new.scope * 4 + 1, new.length, null, null, null);
  insert into entry_fts (rowid, terms) values (new.row * 4 + 1, iif(new.terms = '', '',
    replace(' ' || new.terms, ' ', ' ' || (new.scope * 4 + 1) || ':')));
end;

create trigger chunk_gone after delete on chunk begin
  insert into entry_fts (entry_fts, rowid, terms) values ('delete', old.row * 4 + 1, iif(old.terms = '', '',
    replace(' ' || old.terms, ' ', ' ' || (old.scope * 4 + 1) || ':')));
  delete from entry where id = old.row * 4 + 1;
end;

create trigger version_added after insert on version begin
  insert into entry values (new.row * 4 + 2, new.scope * 4 + 2, new.length, new.expires_at, new.kind, new.category);
  insert into entry_fts (rowid, terms) values (new.row * 4 + 2, iif(new.terms = '', '',
    replace(' ' || new.terms, ' ', ' ' || (new.scope * 4 + 2) || ':')));
end;

create trigger version_gone after delete on version begin
  insert into entry_fts (entry_fts, rowid, terms) values ('delete', old.row * 4 + 2, iif(old.terms = '', '',
    replace(' ' || old.terms, ' ', ' ' || (old.scope * 4 + 2) || ':')));
  delete from entry where id = old.row * 4 + 2;
end;

create trigger entry_added after insert on entry begin
  insert into bucket values (new.bucket, 1, new.length)
    on conflict (id) do update set docs = docs + 1, length = length + excluded.length;
end;

create trigger entry_changed after update on entry when old.bucket <> new.bucket or old.length <> new.length begin
  update bucket set docs = docs - 1, length = length - old.length where id = old.bucket;
  insert into bucket values (new.bucket, 1, new.length)
    on conflict (id) do update set docs = docs + 1, length = length + excluded.length;
  update vector set bucket = new.bucket where entry = new.id;
end;

create trigger entry_gone after delete on entry begin
  update bucket set docs = docs - 1, length = length - old.length where id = old.bucket;
  delete from vector where entry = old.id;
end;
