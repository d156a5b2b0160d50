-- What was erased, recognised by an id or by a digest under the key of the data folder: no word of it is here.
create table tombstone (
  digest  text collate "C" not null,
  erasure text collate "C" not null,
  kind    text collate "C" not null,
  owner   text collate "C" not null,
  at      bigint not null,
  tenant  text collate "C" not null default current_setting('commonplace.tenant'),
  primary key (digest, erasure, tenant)
);
create index tombstone_owner on tombstone (owner);
create policy own on tombstone using (tenant = nullif(current_setting('commonplace.tenant', true), ''));

do $$ -- where tenants are apart already, this table is as well
begin
  if exists (select 1 from meta where key = 'tenancy') then
    alter table tombstone enable row level security, force row level security;
  end if;
end $$;
