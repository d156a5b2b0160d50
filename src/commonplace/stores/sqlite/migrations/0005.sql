-- What happened, for those who follow it; and what expires where, so that a write finds what has.
create table event (
  seq      integer primary key autoincrement,
  scope    integer not null references scope (id) on delete cascade,
  what     text not null,
  at       integer not null,
  record   text,
  kind     text,
  key      text,
  version  integer,
  previous integer,
  tags     text not null,
  detail   text not null
) strict;
create index event_scope on event (scope, seq);
create index record_expiring on record (scope, expires_at) where expires_at is not null;
