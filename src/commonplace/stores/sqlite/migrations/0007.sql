-- When a person approved the words of a record; and who changed what, in a chain that notices what is altered.
alter table record add column approved_at integer;
alter table version add column approved_at integer;

create table audit (
  seq     integer primary key,
  at      integer not null,
  verb    text not null,
  record  text,
  version integer,
  actor   text not null,
  channel text,
  digest  text not null
) strict;
create index audit_record on audit (record) where record is not null;
