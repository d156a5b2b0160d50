"""Check, repair, back up and restore a PostgreSQL store.

A backup is the file of a SQLite store: it can be opened as it is, and it restores into either sort of store.  The
server's own tools (``pg_dump``, base backups, replicas) work independently of this.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import apsw

from commonplace.model.errors import InvalidInput, StoreDamaged, StoreError
from commonplace.model.items import Item
from commonplace.model.ports import ProgressCallback, Repair, StoreProblem, no_progress
from commonplace.stores.postgres import bulk_load, hnsw
from commonplace.stores.postgres.dialect import PostgresDb
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.rows import FIELDS, from_json
from commonplace.stores.sql.hashes import accept_altered, every_row, hash_problems
from commonplace.stores.sql.items import PAGE, items
from commonplace.stores.sql.vectors import COMING, PRESENT, embedder
from commonplace.stores.sqlite import items as sqlite_items
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import QUICK_ROWS, finish_file, opened_backup, settle

#: What an entry must be by its record, version or chunk; its terms were made by the writer and cannot be checked.
_ENTRIES = """
  select row * 4 as id, scope * 4 + case when archived_at is null and held = 0 then 0 else 3 end as bucket,
         expires_at as expires, kind, category from record
  union all select row * 4 + 1, scope * 4 + 1, null, null, null from chunk
  union all select row * 4 + 2, scope * 4 + 2, expires_at, kind, category from version
"""
_ASTRAY = (
    f"from entry e join ({_ENTRIES}) w on w.id = e.id"
    " where (e.bucket, e.expires, e.kind, e.category) is distinct from (w.bucket, w.expires, w.kind, w.category)"
    " or e.length <> cardinality(e.terms)"
)
_UNFOUND = f"from ({_ENTRIES}) w where not exists (select 1 from entry e where e.id = w.id)"
_COUNTED = "select bucket, count(*) as texts, sum(length) as length from entry group by bucket"
_MISCOUNTED = (
    f"from ({_COUNTED}) e full join (select * from tally where texts <> 0 or length <> 0) t using (bucket)"
    " where (e.texts, e.length) is distinct from (t.texts, t.length)"
)
_INVALID = (
    "select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid"
    " join pg_namespace n on n.oid = c.relnamespace where n.nspname = ? and not i.indisvalid order by 1"
)


class PostgresMaintenance:
    """Checks, repairs and backs up one store."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store

    def check(self, *, quick: bool = False, progress: ProgressCallback = no_progress) -> list[StoreProblem]:
        try:
            with self.store.reading() as db:
                if quick:
                    return [*hash_problems(db, last=QUICK_ROWS)]
                altered = hash_problems(db, progress=progress)
                return [*self._index(db), *altered, *_vectors(db), *_check_near_index(db)]
        except StoreDamaged as error:
            return [StoreProblem(what=str(error), fixable=False)]

    def repair(self) -> Repair:
        done = []
        with self.store.writing() as db:
            if astray := _count(db, _ASTRAY):
                columns = "bucket = w.bucket, expires = w.expires, kind = w.kind, category = w.category"
                wanted = f"from ({_ENTRIES}) w where w.id = e.id"
                db.run(f"update entry e set {columns}, length = cardinality(e.terms) {wanted}")
                done.append(f"{astray} entries of the index were brought in step with what they are of")
            done += _recount(db)
            for table, row, tags, parents in list(_misfit_links(db)):
                db.run(f"update {table} set tagged = ?, derived = ? where row = ?", [tags, parents, row])
                done.append(f"the tags and parents of a {table} can be asked for again")
            dropped = sum(db.run(f"delete from {table} m {_misfits(db, table)}") for table in ("embedding", "beside"))
            done += [f"{dropped} vectors of a wrong length were dropped, and will be made again"] if dropped else []
            altered = accept_altered(db)
        with self.store.using() as db:
            for (index,) in db.every(_INVALID, [self.store.schema]):
                db.run(f'reindex index "{index}"')
                done.append(f"the index {index!r} was built anew")
            held = embedder(db)
            if held and hnsw.is_missing(db, held.dimensions):
                hnsw.build(db, held.dimensions)
                done.append("an index of what is near was built")
        done += [what for what, has_file in altered if has_file]
        return Repair(done=tuple(done), lost=tuple(what for what, has_file in altered if not has_file))

    def accept_loss(self) -> int:
        """See ``Maintenance``; the server looks after its own log."""
        return 0

    def backup(self, path: str) -> int:
        target = os.path.abspath(path)
        if os.path.exists(target):
            raise InvalidInput(f"{path!r} is there already; a backup overwrites nothing")
        try:
            folder = tempfile.mkdtemp(prefix=".commonplace-", dir=os.path.dirname(target))
            try:
                made = os.path.join(folder, "backup.db")
                with self.store.reading() as db:
                    count = _copy(items(db, self.store.own_folders), made)
                os.link(made, target)  # never over a file that came meanwhile
                settle(os.path.dirname(target))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            raise StoreError(f"the backup {path!r} cannot be written: {error.strerror}") from error
        return count

    def restore(self, path: str) -> int:
        with opened_backup(path) as backup, tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
            copy = os.path.join(folder, "backup.db")
            _duplicate(backup, copy)
            try:
                with closing(SqliteStore(copy)) as source, source.using() as source_db, self.store.writing() as db:
                    return _fill(db, items(source_db), self.store.own_folders)
            except ValueError as error:  # a column that holds no JSON
                raise StoreDamaged(f"the backup {path!r} is damaged ({error}); nothing was changed") from error

    # Checks

    def _index(self, db: PostgresDb) -> Iterator[StoreProblem]:
        for (index,) in db.every(_INVALID, [self.store.schema]):
            yield StoreProblem(what=f"the index {index!r} is not valid", fixable=True)
        if _count(db, _ASTRAY) or next(_misfit_links(db), None):
            yield StoreProblem(what="what can be searched is not what is stored", fixable=True)
        if _count(db, _MISCOUNTED):
            yield StoreProblem(
                what="the texts of a scope are miscounted: what is found may be in a wrong order", fixable=True
            )
        if unfound := _count(db, _UNFOUND):
            what = f"{unfound} texts cannot be found by their words; an export that is imported anew mends it"
            yield StoreProblem(what=what, fixable=False)


def _count(db: PostgresDb, from_where: str) -> int:
    return int(db.every(f"select count(*) {from_where}")[0][0])


def _recount(db: PostgresDb) -> list[str]:
    """Count anew, if it is wrong, while no other transaction adds to the count."""
    db.run("lock table tally in share row exclusive mode")
    if not (wrong := _count(db, _MISCOUNTED)):
        return []
    db.run("delete from tally")
    db.run(f"insert into tally (bucket, texts, length) {_COUNTED}")
    return [f"the texts of {wrong} scopes were counted anew"]


def _vectors(db: PostgresDb) -> Iterator[StoreProblem]:
    if wrong := sum(_count(db, f"from {table} m {_misfits(db, table)}") for table in ("embedding", "beside")):
        yield StoreProblem(what=f"{wrong} vectors are of a wrong length: what is near may not be found", fixable=True)


def _check_near_index(db: PostgresDb) -> Iterator[StoreProblem]:
    held = embedder(db)
    if held and hnsw.is_missing(db, held.dimensions):
        yield StoreProblem(what="there are many vectors and no index of what is near: recall takes long", fixable=True)


def _misfits(db: PostgresDb, table: str) -> str:
    held = embedder(db, PRESENT if table == "embedding" else COMING)
    return f"where vector_dims(m.data) <> {held.dimensions if held else 0}"


def _misfit_links(db: PostgresDb) -> Iterator[tuple[str, int, list[str], list[str]]]:
    """Yield rows whose arrays of tags and parents are not those that they have."""
    for table, row, fields, [tagged, derived] in every_row(db, "tagged", "derived"):
        tags, parents = from_json(fields[FIELDS.index("tags")]), from_json(fields[FIELDS.index("parents")])
        if (tags, list(dict.fromkeys(parents))) != (tagged, derived):
            yield table, row, tags, list(dict.fromkeys(parents))


# Copies


def _copy(source: Iterator[Item], path: str) -> int:
    """Write items to a new file, complete and verified; return how many records they are."""
    with closing(SqliteStore(path)) as target, target.writing(durable=True) as db:
        count = 0
        for item in source:
            sqlite_items.load(db, [item])
            count += item.sort == "record"
    finish_file(path)
    return count


def _duplicate(backup: apsw.Connection, path: str) -> None:
    """Copy a backup, so that the copy can be migrated."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    target = apsw.Connection(path)
    try:
        with target.backup("main", backup, "main") as copying:
            copying.step(-1)
    finally:
        target.close()


def _fill(db: PostgresDb, source: Iterator[Item], own: str) -> int:
    """Replace the whole store by items; return how many records they are."""
    bulk_load.empty(db)
    count = 0
    while batch := list(islice(source, PAGE)):
        bulk_load.load(db, batch, own)
        count += sum(item.sort == "record" for item in batch)
    return count
