-- Scopes, records with their earlier versions, what a search reads, documents, mirrored files and jobs.
--
-- Times are whole microseconds since 1970 in UTC.  Texts are compared byte by byte, whatever the database's collation.
-- `entry` is what a search reads: one row for each thing that can be found.  Its id is the row of the thing times four,
-- plus 0 for a record, 1 for a chunk, 2 for an earlier version.  Its bucket is its scope times four, plus 0 for live
-- records, 1 for chunks, 2 for earlier versions, 3 for archived and held records.  In the index every term begins with
-- its bucket, so that one scope is never read for another.

create table meta (key text collate "C" primary key, value text not null);

create table scope (
  id     bigint generated always as identity primary key,
  parent bigint references scope (id) on delete cascade,
  path   text collate "C" not null unique
);
create index scope_parent on scope (parent);

-- `tagged` and `derived` are tags and parents again, as arrays that can be asked by value.
create table record (
  row             bigint generated always as identity primary key,
  id              text collate "C" not null unique,
  scope           bigint not null references scope (id) on delete cascade,
  kind            text collate "C" not null,
  category        text collate "C" not null,
  content         text collate "C" not null,
  key             text collate "C",
  value           text collate "C",
  tags            text collate "C" not null,
  metadata        text collate "C" not null,
  channel         text collate "C" not null,
  ref             text collate "C",
  parents         text collate "C" not null,
  trust           smallint not null,
  pinned          smallint not null,
  version         bigint not null,
  created_at      bigint not null,
  updated_at      bigint not null,
  occurred_at     bigint,
  expires_at      bigint,
  archived_at     bigint,
  superseded_by   text collate "C",
  held            smallint not null,
  consolidated_at bigint,
  valid_from      bigint not null,
  digest          text collate "C" not null,
  hash            text collate "C" not null,
  tagged          text[] collate "C" not null,
  derived         text[] collate "C" not null
);
create unique index record_key on record (scope, kind, key) where key is not null and archived_at is null and held = 0;
create index record_listed on record (scope, created_at, id);
create index record_same on record (scope, kind, digest) where archived_at is null;
create index record_tagged on record using gin (tagged);
create index record_derived on record using gin (derived);

create table version (
  row             bigint generated always as identity primary key,
  record          bigint not null references record (row) on delete cascade,
  id              text collate "C" not null,
  scope           bigint not null,
  kind            text collate "C" not null,
  category        text collate "C" not null,
  content         text collate "C" not null,
  key             text collate "C",
  value           text collate "C",
  tags            text collate "C" not null,
  metadata        text collate "C" not null,
  channel         text collate "C" not null,
  ref             text collate "C",
  parents         text collate "C" not null,
  trust           smallint not null,
  pinned          smallint not null,
  version         bigint not null,
  created_at      bigint not null,
  updated_at      bigint not null,
  occurred_at     bigint,
  expires_at      bigint,
  archived_at     bigint,
  superseded_by   text collate "C",
  held            smallint not null,
  consolidated_at bigint,
  valid_from      bigint not null,
  digest          text collate "C" not null,
  hash            text collate "C" not null,
  tagged          text[] collate "C" not null,
  derived         text[] collate "C" not null,
  unique (record, version)
);
create index version_scope on version (scope);

create table usage (
  record           bigint primary key references record (row) on delete cascade,
  recalls          bigint not null,
  last_recalled_at bigint
);

create table document (
  row        bigint generated always as identity primary key,
  scope      bigint not null references scope (id) on delete cascade,
  kind       text collate "C" not null,
  name       text collate "C" not null,
  digest     text collate "C" not null,
  content    text collate "C",
  metadata   text collate "C" not null,
  channel    text collate "C" not null,
  ref        text collate "C",
  parents    text collate "C" not null,
  trust      smallint not null,
  created_at bigint not null,
  updated_at bigint not null,
  unique (scope, kind, name)
);

create table chunk (
  row         bigint generated always as identity primary key,
  document    bigint not null references document (row) on delete cascade,
  scope       bigint not null,
  seq         bigint not null,
  ref         text collate "C" not null,
  text        text collate "C" not null,
  speaker     text collate "C" not null,
  occurred_at bigint,
  trust       smallint not null,
  unique (document, seq)
);
create index chunk_speaker on chunk (scope, speaker);

create table file (
  folder  text collate "C" not null,
  path    text collate "C" not null,
  record  text collate "C" not null,
  version bigint not null,
  digest  text collate "C" not null,
  stamp   bigint not null,
  primary key (folder, path)
);
create index file_record on file (folder, record);

create table job (
  scope       bigint not null references scope (id) on delete cascade,
  kind        text collate "C" not null,
  key         text collate "C" not null,
  status      text collate "C" not null,
  token       text collate "C",
  lease_until bigint,
  retry_at    bigint,
  tries_left  bigint not null,
  error       text collate "C",
  input       bigint not null,
  done        bigint,
  started_at  bigint,
  finished_at bigint,
  primary key (scope, kind, key)
);

-- What a search reads.  Exactly one of record, version and chunk is what the entry is of.
create table entry (
  id       bigint primary key,
  record   bigint unique references record (row) on delete cascade,
  version  bigint unique references version (row) on delete cascade,
  chunk    bigint unique references chunk (row) on delete cascade,
  bucket   bigint not null,
  length   bigint not null,
  expires  bigint,
  kind     text collate "C",
  category text collate "C",
  terms    text[] collate "C" not null,
  check (num_nonnulls(record, version, chunk) = 1)
);
create index entry_bucket on entry (bucket) include (length);

-- Terms with the bucket before each.  In plpgsql, so that the planner neither opens it nor takes it for cheap.
create function placed(bucket bigint, terms text[]) returns text[]
language plpgsql immutable strict parallel safe cost 1000 as $$
begin
  return array(select distinct bucket || ':' || term from unnest(terms) term);
end $$;
create index entry_terms on entry using gin (placed(bucket, terms)) with (gin_pending_list_limit = 256);

-- Vectors of the embedder in use, and those of another one while they are built beside them.
create table embedding (
  entry bigint primary key references entry (id) on delete cascade,
  data  vector not null
);
create table beside (
  entry bigint primary key references entry (id) on delete cascade,
  data  vector not null
);
