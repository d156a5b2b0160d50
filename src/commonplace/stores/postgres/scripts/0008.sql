-- When a person approved the words of a record; and who changed what, in a chain that notices what is altered.
alter table record add column if not exists approved_at bigint;
alter table version add column if not exists approved_at bigint;

create table audit (
  seq     bigint not null,
  at      bigint not null,
  verb    text collate "C" not null,
  record  text collate "C",
  version bigint,
  actor   text collate "C" not null,
  channel text collate "C",
  digest  text collate "C" not null,
  tenant  text collate "C" not null default current_setting('commonplace.tenant'),
  primary key (tenant, seq)
);
create index audit_record on audit (tenant, record) where record is not null;
create policy own on audit using (tenant = nullif(current_setting('commonplace.tenant', true), ''));

do $$ -- the tables that were there are apart already; this one follows
begin
  if exists (select 1 from meta where key = 'tenancy') then
    alter table audit enable row level security, force row level security;
  end if;
end $$;
