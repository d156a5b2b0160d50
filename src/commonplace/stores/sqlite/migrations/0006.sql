-- What was erased, recognised by an id or by a digest under the key of the data folder: no word of it is here.
create table tombstone (
  digest  text not null,
  erasure text not null,
  kind    text not null,
  owner   text not null,
  at      integer not null,
  primary key (digest, erasure)
) strict, without rowid;
create index tombstone_owner on tombstone (owner);
