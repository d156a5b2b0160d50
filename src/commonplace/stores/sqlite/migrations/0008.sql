-- Hashes of documents and passages, as records have them: what is read is what was written.
alter table document add column hash text;
alter table chunk add column hash text;

-- How many things of which kind and state a scope has, and of how many bytes: what `status` shows, however many there
-- are.  What has expired is counted as live here; there are few, and an index finds them.
create table stock (
  scope integer not null,
  kind  text not null,
  state text not null,
  count integer not null,
  bytes integer not null,
  primary key (scope, kind, state)
) strict, without rowid;

insert into stock select scope, kind, iif(record.archived_at is not null, 'archived', iif(record.held = 1, 'held', 'live')), count(*), sum(length(cast(content as blob)))
  from record group by 1, 2, 3;
insert into stock select d.scope, d.kind, 'live', count(*), sum(coalesce(length(cast(d.content as blob)), 0)
    + coalesce((select sum(length(cast(c.text as blob))) from chunk c where c.document = d.row), 0))
  from document d group by 1, 2;

create trigger stock_record_added after insert on record begin
  insert into stock values (new.scope, new.kind, iif(new.archived_at is not null, 'archived', iif(new.held = 1, 'held', 'live')), 1, length(cast(new.content as blob)))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;

create trigger stock_record_gone after delete on record begin
  insert into stock values (old.scope, old.kind, iif(old.archived_at is not null, 'archived', iif(old.held = 1, 'held', 'live')), -1, -length(cast(old.content as blob)))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;

create trigger stock_record_changed after update of scope, kind, content, archived_at, held on record begin
  insert into stock values (old.scope, old.kind, iif(old.archived_at is not null, 'archived', iif(old.held = 1, 'held', 'live')), -1, -length(cast(old.content as blob)))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
  insert into stock values (new.scope, new.kind, iif(new.archived_at is not null, 'archived', iif(new.held = 1, 'held', 'live')), 1, length(cast(new.content as blob)))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;

create trigger stock_document_added after insert on document begin
  insert into stock values (new.scope, new.kind, 'live', 1, coalesce(length(cast(new.content as blob)), 0))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;

create trigger stock_document_changed after update of scope, kind, content on document begin
  insert into stock values (old.scope, old.kind, 'live', -1, -coalesce(length(cast(old.content as blob)), 0))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
  insert into stock values (new.scope, new.kind, 'live', 1, coalesce(length(cast(new.content as blob)), 0))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;

-- Before: its chunks go with it, and then nobody knows any more of what kind they were.
create trigger stock_document_gone before delete on document begin
  insert into stock values (old.scope, old.kind, 'live', -1, -coalesce(length(cast(old.content as blob)), 0))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
  update stock set bytes = bytes
      - coalesce((select sum(length(cast(text as blob))) from chunk where document = old.row), 0)
    where scope = old.scope and kind = old.kind and state = 'live';
end;

create trigger stock_chunk_added after insert on chunk begin
  insert into stock values (new.scope, (select kind from document where row = new.document), 'live', 0, length(cast(new.text as blob)))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;

create trigger stock_chunk_gone after delete on chunk
when exists (select 1 from document where row = old.document) begin
  insert into stock values (old.scope, (select kind from document where row = old.document), 'live', -0, -length(cast(old.text as blob)))
    on conflict (scope, kind, state) do update set count = count + excluded.count, bytes = bytes + excluded.bytes;
end;
