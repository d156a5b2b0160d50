-- Tenants: whose a row is, and a policy by which nobody sees or writes what is another's.
--
-- A connection says who it is with the setting `commonplace.tenant`.  One that does not say it can write nothing.  The
-- policies rest until somebody opens the store for a tenant (postgres_migrations.py): then row-level security is switched
-- on and forced, and a connection that does not say who it is sees nothing.  `meta` is about the schema and is everybody's.

create table setting (
  key   text collate "C" not null,
  value text collate "C" not null
);
insert into setting select key, value from meta
 where key in ('embedder', 'dimensions', 'next_embedder', 'next_dimensions');
delete from meta where key in ('embedder', 'dimensions', 'next_embedder', 'next_dimensions');

do $$
declare
  name text;
begin
  foreach name in array array['setting', 'scope', 'record', 'version', 'usage', 'document', 'chunk', 'file', 'job', 'event',
                              'entry', 'embedding', 'beside'] loop
    execute format('alter table %I add column tenant text collate "C" not null default ''default''', name);
    execute format('alter table %I alter column tenant set default current_setting(''commonplace.tenant'')', name);
    execute format('create policy own on %I using (tenant = nullif(current_setting(''commonplace.tenant'', true), ''''))',
                   name);
  end loop;
end $$;

-- What is unique is so for each tenant.  The tenant comes last: without row-level security nobody asks for it.
alter table setting add primary key (key, tenant);
alter table scope drop constraint scope_path_key, add unique (path, tenant);
alter table record drop constraint record_id_key, add unique (id, tenant);
alter table file drop constraint file_pkey, add primary key (folder, path, tenant);
alter table event drop constraint event_pkey, add primary key (seq, tenant);
