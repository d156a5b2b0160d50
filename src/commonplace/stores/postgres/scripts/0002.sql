-- What happened, for those who follow it; and what expires where, so that a write finds what has.
create table event (
  seq      bigint generated always as identity primary key,
  scope    bigint not null references scope (id) on delete cascade,
  what     text collate "C" not null,
  at       bigint not null,
  record   text collate "C",
  kind     text collate "C",
  key      text collate "C",
  version  bigint,
  previous bigint,
  tags     text collate "C" not null,
  detail   text collate "C" not null
);
create index event_scope on event (scope, seq);
create index record_expiring on record (scope, expires_at) where expires_at is not null;
