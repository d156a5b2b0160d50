-- What a search would have to count, counted beforehand.
--
-- `tally`: how many texts of what length are in a bucket.  Writers of one scope take turns anyway, so one row for each
-- bucket makes nobody wait.
-- `entry.repeated`: the terms that are there once more, each as often as that; most terms of a text are there once, and
-- are not looked for among all of them.

create function repeats(terms text[]) returns text[]
language plpgsql immutable strict parallel safe as $$
begin
  return array(select term from (select term, row_number() over (partition by term) as time from unnest(terms) term) said
                where time > 1);
end $$;
alter table entry add column repeated text[] collate "C" not null generated always as (repeats(terms)) stored;

create table tally (
  bucket bigint primary key,
  texts  bigint not null,
  length bigint not null,
  tenant text collate "C" not null default current_setting('commonplace.tenant')
) with (fillfactor = 50); -- a row that changes stays on its page
create policy own on tally using (tenant = nullif(current_setting('commonplace.tenant', true), ''));

-- In the order of buckets, so that no two who write to several wait for each other.
create function tallied() returns trigger language plpgsql set search_path from current as $$
begin
  if tg_op = 'INSERT' then
    insert into tally (bucket, texts, length)
      select bucket, count(*), sum(length) from born group by bucket order by bucket
      on conflict (bucket) do update set texts = tally.texts + excluded.texts, length = tally.length + excluded.length;
  elsif tg_op = 'UPDATE' then
    insert into tally (bucket, texts, length)
      select bucket, sum(texts), sum(length)
        from (select bucket, 1 as texts, length from born union all select bucket, -1, -length from gone) moved
       group by bucket having sum(texts) <> 0 or sum(length) <> 0 order by bucket
      on conflict (bucket) do update set texts = tally.texts + excluded.texts, length = tally.length + excluded.length;
  else
    insert into tally (bucket, texts, length)
      select bucket, -count(*), -sum(length) from gone where exists (select 1 from scope where id = bucket / 4)
       group by bucket order by bucket
      on conflict (bucket) do update set texts = tally.texts + excluded.texts, length = tally.length + excluded.length;
    delete from tally where texts = 0 and bucket in (select bucket from gone);
  end if;
  return null;
end $$;
create trigger born after insert on entry referencing new table as born for each statement execute function tallied();
create trigger gone after delete on entry referencing old table as gone for each statement execute function tallied();
create trigger moved after update on entry referencing old table as gone new table as born
  for each statement execute function tallied();

-- With a scope goes what was counted in it.
create function uncounted() returns trigger language plpgsql set search_path from current as $$
begin
  delete from tally t using gone where t.bucket between gone.id * 4 and gone.id * 4 + 3;
  return null;
end $$;
create trigger gone after delete on scope referencing old table as gone for each statement execute function uncounted();

do $$ -- an owner sees every tenant's rows only while row-level security is not forced
declare
  apart boolean := exists (select 1 from meta where key = 'tenancy');
begin
  if apart then
    alter table entry no force row level security;
  end if;
  insert into tally select bucket, count(*), sum(length), tenant from entry group by bucket, tenant;
  if apart then
    alter table entry force row level security;
    alter table tally enable row level security, force row level security;
  end if;
end $$;
