"""The index of a store's sessions: loads the newest, then all, then changes.

Methods are blocking and meant for worker threads; `load` may run in one thread while `update` runs
in a different one. Summaries are cached (`cache.py`), so that the next start reads hardly any
session files.
"""

from __future__ import annotations

import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.agents import Agent
from gemtui.errors import SessionAmbiguous, SessionNotFound
from gemtui.paths import current_folder, typed_path
from gemtui.sessions.catalog.cache import (
    SUMMARIES,
    Cache,
    worth_keeping,
)
from gemtui.sessions.catalog.catalog import Catalog, Snapshot, Stamp
from gemtui.sessions.catalog.selection import (
    LATEST,
    is_path,
    latest_update,
    name_fits,
    newest_files_first,
    newest_session,
    nothing_stored,
    require_readable,
    split_agent,
    the_one,
    with_id_prefix,
)
from gemtui.sessions.catalog.summary import Known, Summary, Unread
from gemtui.sessions.catalog.vault_files import in_tree, kept_at, store_with_kept, trees
from gemtui.sessions.store.projects import ProjectFolders, Projects, folder_names
from gemtui.sessions.store.shelf import agent_of_key
from gemtui.sessions.store.store import (
    ChatFile,
    Problem,
    SessionKind,
    Store,
    StoreState,
    file_anywhere,
    name_of,
    never,
    place_of,
    problem_of,
)

if TYPE_CHECKING:
    from gemtui.sessions.read.session_log import SessionLog

HEAD = 64 * 1024
"""Number of bytes that `quick` reads of each file: enough for the first prompt."""
LOGS = 4
"""Maximum number of growing session files that are kept open.

When an open file grows, only the new bytes are read.
"""
_QUICK_LOOKS = 3
"""Maximum number of files that `quick` reads per requested session.

It reads more than one because many files are ghosts (empty files) or copies.
"""
_SAVE = 1000
_PUBLISH = 0.25


def _nothing() -> None:
    pass


class Index:
    """An index of the sessions under `home` (`~/.gemini`).

    `cache`: gemtui's cache folder; None disables the cache.
    """

    def __init__(self, home: Path, *, cache: Path | None) -> None:
        self.home = home
        self._cache = Cache(cache, home, SUMMARIES)
        self._store: Store | None = None
        self._places: dict[str, ChatFile] = {}
        self._projects = Projects(home)
        self._catalog = Catalog(self._projects)
        self._asked: set[str] = set()
        self._unread: dict[str, tuple[Stamp | None, Problem]] = {}
        self._too_large: dict[str, tuple[int, int]] = {}
        self._logs: OrderedDict[str, SessionLog] = OrderedDict()
        self._lock = threading.RLock()
        self._updating = threading.Lock()

    @property
    def cache_problem(self) -> Problem | None:
        """Why there is no cache; None if there is one."""
        return self._cache.problem

    @property
    def renewed(self) -> Problem | None:
        """Why the cache was replaced by an empty one; None if it wasn't."""
        return self._cache.renewed

    def close(self) -> None:
        """Close all open session logs and the cache."""
        with self._updating:
            for log in self._logs.values():
                log.close()
            self._logs.clear()
            self._cache.close()

    def expect(self, project: Path) -> None:
        """Assign to `project` those sessions that name only the hash of its path.

        `quick` and `find` do the same for their `project`.
        """
        names = folder_names(project)
        with self._lock:
            self._asked |= names
            self._catalog.learn(names)

    def add_known(self, known: Iterable[tuple[ChatFile, Summary]]) -> None:
        """Add summaries that another index of the same store has already read."""
        for place, summary in known:
            self._take(place, summary)

    def known(self) -> list[tuple[ChatFile, Summary]]:
        """Return the files that have been read, fully or in part, with their summaries."""
        with self._lock:
            files = ((place, self._catalog.file(name)) for name, place in self._places.items())
            return [(place, summary) for place, summary in files if summary is not None]

    # --- quick, load, update -----------------------------------------------------------------

    def quick(self, *, project: Path | None, limit: int) -> Snapshot:
        """Read the newest sessions until `limit` can be listed; return a snapshot.

        They are read from the cache, or else from the beginnings of their files; if a session has
        only been read in part (`Summary.partial`), its counts are lower bounds. `project`: read
        only this folder's sessions, unless it has none; None means those of all projects. The
        snapshot also has the sessions that were read earlier.
        """
        store = self._scan()
        scope = self._scope(store, project, read=False, worktrees=True)
        if not self._read_newest(scope, limit):
            self._read_newest(store.files(), limit)
        return self._snapshot(store)

    def _read_newest(self, scope: Sequence[ChatFile], limit: int) -> int:
        """Read the newest of these files until `limit` can be listed; return how many can."""
        mains = [place for place in scope if place.kind is SessionKind.MAIN]
        newest = newest_files_first(mains)
        shown = looked = 0
        while shown < limit and looked < min(len(newest), _QUICK_LOOKS * limit):
            some = newest[looked : looked + limit - shown]
            self._read_all(self._not_cached(some, whole=False), upto=HEAD)
            looked += len(some)
            summaries = (self._catalog.file(place.name) for place in newest[:looked])
            shown = len({read.id for read in summaries if read is not None and not read.hidden})
        return shown

    def load(
        self,
        *,
        publish: Callable[[Snapshot], None] | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> Snapshot:
        """Read all files, newest first, and cache the results; return a snapshot.

        `publish`: called a few times a second with an intermediate snapshot. `cancelled`: called
        between files and within large ones; if it returns True, loading stops, but everything read
        so far is kept.
        """
        store = self._scan()
        say = _nothing
        if publish is not None:
            say = _Seldom(lambda: publish(self._snapshot(store)))
        self._catch_up(store, say, cancelled)
        return self._snapshot(store)

    def update(self, paths: Iterable[Path], *, cancelled: Callable[[], bool] = never) -> Snapshot:
        """Read files that changed, appeared, or vanished; return a new snapshot.

        Only the new part of a log is read. If any of the paths is not a session's file, or has
        become unreadable, the whole store is scanned again. If there are no paths, only the live
        flags are updated. `cancelled`: as in `load`.
        """
        with self._updating:
            wanted = set(paths)
            files = {path for path in wanted if _is_session_file(path, self.home)}
            if self._store is None or wanted - files:
                self._catch_up(self._scan(), _nothing, cancelled)
            for path in files:
                if not cancelled():
                    self._follow(path, cancelled)
            return self._snapshot(self._store or self._scan())

    def find(
        self,
        wanted: str,
        *,
        project: Path | None = None,
        accept: Callable[[Summary], bool] = lambda _: True,
        scan: bool = True,
    ) -> Summary:
        """Return the session for a full id, a unique prefix, a file's path, or "latest".

        Blanks around an id are ignored, as by the CLI. An agent may stand before an id or "latest",
        as in `claude:ID`. `project`: consider only this folder's
        sessions; ignored if `wanted` is a path. `accept`: which sessions "latest" may mean. `scan`:
        False if the store has just been scanned. Raises SessionNotFound, SessionAmbiguous, or
        StoreUnreadable; for a path, also NotASession, SessionTooLarge, or OSError.
        """
        if is_path(wanted):
            return self._at(typed_path(wanted).absolute())
        agent, wanted = split_agent(wanted.strip())
        store = self._scan() if scan or self._store is None else self._store
        self._require_readable(store)
        places = self._scope(store, project, read=True)
        if agent is not None:
            places = [place for place in places if agent_of_key(place.project_key) is agent]
        if wanted == LATEST:
            session = self._newest(store, places, accept)
            if session is None:
                raise nothing_stored(store, project)
            return self._with_copies(session, store)
        likely = [place for place in places if name_fits(place, wanted)]
        matches = with_id_prefix(self.sessions_in(likely), wanted)
        if not matches:
            matches = with_id_prefix(self.sessions_in(places), wanted)
        return self._with_copies(the_one(matches, wanted, store), store)

    # --- single queries ----------------------------------------------------------------------

    def files(self, project: Path | None = None) -> Sequence[ChatFile]:
        """Return all session files as of the last scan, or only those of a project.

        Sessions in a repository's worktrees belong to the repository. Raises StoreUnreadable.
        """
        store = self._store or self._scan()
        self._require_readable(store)
        return self._scope(store, project, read=True, worktrees=True)

    @property
    def places(self) -> Mapping[str, ChatFile]:
        """All session files as of the last scan, by path."""
        return self._places

    def sessions_in(self, files: Sequence[ChatFile]) -> tuple[Summary, ...]:
        """Return the sessions that these files belong to, newest first.

        Files that haven't been read yet are read now. Hidden sessions are included.
        """
        self._read_all(self._not_cached(files, whole=True))
        with self._lock:
            return self._catalog.sessions_of([file.name for file in files], _now())

    def complete_cache(self) -> Cache[Known] | None:
        """Return the cache once it has all readable files of the store; None if it can't.

        Files that aren't cached in their current state are read. Raises StoreUnreadable.
        """
        files = self.files()
        if self._cache.note_current(files):
            return self._cache
        outdated = self._cache.outdated(files)
        self._read_all(self._not_cached(outdated, whole=True))
        self._cache.keep_only(files)
        readable = [file for file in files if not self._is_denied(file)]
        return self._cache if self._cache.note_current(readable) else None

    def _is_denied(self, file: ChatFile) -> bool:
        """Return whether a file could not be read, for a reason that may be temporary."""
        stamp, problem = self._unread.get(file.name, (file.stamp, None))
        return problem is not None and stamp is None

    def project_of(self, file: ChatFile, project_hash: str | None) -> str | None:
        """Return the project a file belongs to; None if unknown.

        It is determined by the folder the file is in, or else by `project_hash`, the hash in the
        session's header.
        """
        return self._projects.root_of(file.project_key, project_hash)

    def learn_projects(self, named: Iterable[str]) -> None:
        """Collect paths that may be the folders of projects known only by a hash.

        If a folder under `tmp` is still named by the hash of an unknown project, the paths of files
        that its sessions wrote are collected as well. `named`: the folders that sessions name.
        """
        with self._lock:
            self._catalog.learn(named)
        unknown = self._projects.unknown_hashes()
        if unknown:
            files = [file for file in self.files() if file.project_key in unknown]
            self._read_all(self._not_cached(files, whole=True))

    def unreadable(self, cache: Cache[Known]) -> int:
        """Return how many files and folders are unreadable or invalid.

        `cache`: the result of `complete_cache`.
        """
        return len(self._refused()) + cache.unreadable()

    def problems(self, cache: Cache[Known]) -> list[Problem]:
        """Return why files and folders are unreadable or invalid.

        `cache`: the result of `complete_cache`.
        """
        names = cache.unread_names()
        unread = cache.get(file for file in self.files() if file.name in names)
        return self._refused() + [
            _problem_of_unread(name, known)
            for name, known in unread.items()
            if isinstance(known, Unread)
        ]

    def _refused(self) -> list[Problem]:
        """Return why files and folders can't be accessed, which no cache knows."""
        problems = () if self._store is None else self._store.problems
        denied = (problem for stamp, problem in self._unread.values() if stamp is None)
        return [*problems, *denied]

    # --- finding -----------------------------------------------------------------------------

    def _at(self, path: Path) -> Summary:
        """Return the session in the file at `path`, inside or outside the store.

        Other files of the same session are ignored.
        """
        place = None
        with suppress(OSError):
            place = place_of(path, self.home)
        place = place or file_anywhere(path)
        if place is None:
            raise SessionNotFound(
                f"{path} does not exist or is not a regular file", searched=(path,)
            )
        from gemtui.sessions.catalog.summarise import summarise
        from gemtui.sessions.read.session_log import SessionLog

        with SessionLog.read(path) as log:
            summary = summarise(log, place)
        self._scan()
        alone = Catalog(self._projects)
        alone.put(place.stamp, summary)
        return alone.sessions(_now())[0]

    def _newest(
        self, store: Store, places: Sequence[ChatFile], accept: Callable[[Summary], bool]
    ) -> Summary | None:
        """Return the session in these files that was updated last, as `newest_session` does.

        The cache knows the times of all files except those that have changed since; it is not
        asked again if it turns out to be damaged.
        """
        mains = {place.name: place for place in places if place.kind is SessionKind.MAIN}
        if not mains:
            return None
        failures = self._cache.failures
        outdated = {place.name for place in self._cache.outdated(store.files())}
        changed = (place for name, place in mains.items() if name in outdated)
        cached = (
            (session.time, mains[session.name])
            for session in self._cache.newest_first(mains)
            if session.name in mains and session.name not in outdated
        )
        files = merge(self._by_time(changed), cached, key=itemgetter(0), reverse=True)
        session = newest_session(files, read=self.sessions_in, accept=accept)
        if self._cache.failures == failures:
            return session
        every_file = iter(self._by_time(mains.values()))
        return newest_session(every_file, read=self.sessions_in, accept=accept)

    def _by_time(self, places: Iterable[ChatFile]) -> list[tuple[float, ChatFile]]:
        files = [(self._when(place), place) for place in places]
        return sorted(files, key=itemgetter(0), reverse=True)

    def _with_copies(self, session: Summary, store: Store) -> Summary:
        """Return a session with all its copies, reading the files that may be copies."""
        likely = [place for place in store.files() if name_fits(place, session.id)]
        for candidate in self.sessions_in(likely):
            if set(session.names) <= set(candidate.names):
                return candidate
        return session

    # --- scanning and reading ----------------------------------------------------------------

    def _scan(self) -> Store:
        """Scan the store again, and forget files that no longer exist."""
        store = store_with_kept(self.home)
        projects = Projects(
            self.home, {*store.keys(), *(file.project_key for file in store.files())}
        )
        projects.learn([*_here(), *self._asked])
        with self._lock:
            self._store = store
            self._places = {place.name: place for place in store.files()}
            if not projects.says_the_same(self._projects):
                self._projects = projects
                self._catalog.use(projects)
            self._catalog.drop_all_but(self._places)
            for path in self._unread.keys() - self._places.keys():
                del self._unread[path]
        return store

    def _scope(
        self, store: Store, project: Path | None, *, read: bool, worktrees: bool = False
    ) -> Sequence[ChatFile]:
        """Return the session files of a project.

        `worktrees`: also those of the project's git worktrees. In some folders, the project is
        named only in the sessions themselves. If `read` is true, those sessions are read;
        otherwise, only those in the catalog are considered.
        """
        if project is None:
            return store.files()
        self.expect(project)
        names = folder_names(project)
        self._projects.learn(names)
        folders = ProjectFolders(project, worktrees=worktrees)
        keys, unplaced = self._projects.keys_in(folders), self._projects.unplaced()
        missing = self._not_cached(
            [place for place in store.files() if place.project_key in unplaced], whole=False
        )
        if read:
            self._read_all(missing, upto=HEAD)
        return [
            place
            for place in store.files()
            if place.project_key in keys
            or (place.project_key in unplaced and self._root_of(place) in folders)
        ]

    def _when(self, place: ChatFile) -> float:
        """Return an upper bound for the time of a session's last update.

        `place`: the session's file. The time is in seconds since 1970. It is exact if the whole
        file has been read.
        """
        read = self._catalog.file(place.name)
        if read is None or read.partial:
            return latest_update(place)
        return read.when.timestamp()

    def _root_of(self, place: ChatFile) -> str | None:
        read = self._catalog.file(place.name)
        return None if read is None else self._projects.root_of("", read.project_hash)

    def _catch_up(
        self, store: Store, say: Callable[[], None], cancelled: Callable[[], bool]
    ) -> None:
        missing = self._not_cached(newest_files_first(store.files()), whole=True)
        if missing:
            say()
        self._read_all(missing, say, cancelled)
        if not cancelled():
            self._cache.keep_only(store.files())

    def _not_cached(self, places: Iterable[ChatFile], *, whole: bool) -> list[ChatFile]:
        """Load summaries of files from the cache; return the files that must be read.

        Files whose summaries are already known are skipped. `whole`: a summary counts only if the
        whole file was read.
        """
        with self._lock:
            missing = [place for place in places if not self._knows(place, whole=whole)]
        cached = self._cache.get(missing)
        for place in missing:
            if place.name in cached:
                self._take(place, cached[place.name])
        return [place for place in missing if place.name not in cached]

    def _read_all(
        self,
        places: Sequence[ChatFile],
        say: Callable[[], None] = _nothing,
        cancelled: Callable[[], bool] = never,
        *,
        upto: int | None = None,
    ) -> None:
        """Read files, and cache the results that were read in full."""
        if not places:
            return
        from gemtui.sessions.catalog.read_files import read_files

        unsaved: list[tuple[ChatFile, Known]] = []
        for place, result in read_files(places, upto=upto, cancelled=cancelled):
            self._take(place, result)
            unsaved += worth_keeping(place, result)
            if len(unsaved) >= _SAVE:
                self._cache.put(unsaved)
                unsaved = []
            say()
        self._cache.put(unsaved)

    def _follow(self, path: Path, cancelled: Callable[[], bool]) -> None:
        """Read the new part of a file; forget the file if it no longer exists."""
        try:
            place = place_of(path, self.home)
        except OSError as error:
            known_place = self._places.get(str(path))
            if known_place is not None:
                self._take(known_place, problem_of(path, error))
            return
        self._turn_to_kept(path)
        if place is None:
            self._forget(str(path))
            return
        if self._is_still_too_large(place):
            self._places[place.name] = place
            return
        if self._catalog.knows(place.name, place.stamp, whole=True):
            return  # the contents are the same, for example after a rename
        from gemtui.sessions.catalog.read_files import read_file
        from gemtui.sessions.read.session_log import SessionLog

        log = self._logs.pop(place.name, None) or SessionLog(path)
        result = read_file(log, place, cancelled=cancelled)
        if cancelled():
            log.close()
            return
        self._places[place.name] = place
        self._take(place, result)
        self._cache.put(worth_keeping(place, result))
        if isinstance(result, Summary) and result.format == "jsonl":
            self._logs[place.name] = log
            if len(self._logs) > LOGS:
                self._logs.popitem(last=False)[1].close()
        else:
            log.close()

    def _turn_to_kept(self, path: Path) -> None:
        """Use the vault's copies of a session file that the store has lost.

        The vault is the folder in which gemtui saves sessions that Gemini CLI may delete. Copies
        whose content is still in the store are removed from the index. `path`: the file's path in
        the store.
        """
        kept = {place.name: place for place in kept_at(path, self.home)}
        for name in {str(in_tree(tree, path)) for tree in trees()} - kept.keys():
            self._forget(name)
        self._read_all(self._not_cached(kept.values(), whole=True))
        with self._lock:
            self._places |= kept

    # --- known files -------------------------------------------------------------------------

    def _is_still_too_large(self, place: ChatFile) -> bool:
        """Return whether to skip a file because it was too large when last read.

        It is skipped until it is replaced or shrinks.
        """
        inode, size = self._too_large.get(place.name, (place.inode, place.size + 1))
        return inode == place.inode and size <= place.size

    def _knows(self, place: ChatFile, *, whole: bool) -> bool:
        unread = self._unread.get(place.name)
        if (unread is not None and unread[0] == place.stamp) or self._is_still_too_large(place):
            return True
        return self._catalog.knows(place.name, place.stamp, whole=whole)

    def _take(self, place: ChatFile, known: Known | Problem | None) -> None:
        """Store the result of reading a file.

        If a session can't be read at the moment, its earlier summary is kept, because old CLI
        versions rewrite their files in place, so a file may be incomplete for a moment. A summary
        for which only the beginning of the file was read is not kept. If the system denies access,
        a problem is recorded, and reading the file is tried again later.
        """
        with self._lock:
            self._too_large.pop(place.name, None)
            if isinstance(known, Summary):
                self._unread.pop(place.name, None)
                self._catalog.put(place.stamp, known)
                return
            if isinstance(known, Unread) and known.too_large:
                self._too_large[place.name] = place.inode, place.size
            read = self._catalog.file(place.name)
            if read is not None and read.partial:  # only the first part of the file
                self._catalog.drop(place.name)
            match known:
                case None:
                    self._forget(place.name)
                case Problem():
                    self._unread[place.name] = None, known
                case Unread() if self._catalog.file(place.name) is None:
                    self._unread[place.name] = place.stamp, _problem_of_unread(place.name, known)
                case Unread():
                    self._unread.pop(place.name, None)

    def _forget(self, path: str) -> None:
        with self._lock:
            self._catalog.drop(path)
            self._places.pop(path, None)
            self._unread.pop(path, None)
            self._too_large.pop(path, None)
            log = self._logs.pop(path, None)
        if log is not None:
            log.close()

    def _snapshot(self, store: Store) -> Snapshot:
        with self._lock:
            refused = sum(self._catalog.file(path) is None for path in self._unread)
            read, total = len(self._catalog) + refused, len(self._places)
            return Snapshot(
                sessions=self._catalog.sessions(_now()),
                done=read,
                total=total,
                complete=read >= total and self._catalog.whole,
                unreadable=(*store.problems, *(problem[1] for problem in self._unread.values())),
                state=self._state(store),
                looked=store.looked,
                cache=self._cache.problem,
                renewed=self._cache.renewed,
            )

    def _require_readable(self, store: Store) -> None:
        require_readable(self.home, self._state(store), store.problems)

    def _state(self, store: Store) -> StoreState:
        """Return the store's state, which is OK if the index has any session files.

        This includes files in the vault, which may remain when the CLI's own store is gone.
        """
        if self._places:
            return StoreState.OK
        return StoreState.EMPTY if store.state is StoreState.OK else store.state


class _Seldom:
    """Calls a function at most four times a second, and less often if it is slow.

    The calls take at most a fifth of the total time.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._next = 0.0

    def __call__(self) -> None:
        start = time.monotonic()
        if start >= self._next:
            self._call()
            end = time.monotonic()
            self._next = end + max(_PUBLISH, 4 * (end - start))


def _problem_of_unread(name: str, unread: Unread) -> Problem:
    return Problem(path=Path(name), line=None, what=unread.what, too_large=unread.too_large)


def _here() -> list[str]:
    """Return the current folder in a list, or an empty list if it has been removed.

    It may be the folder of a project known only by a hash.
    """
    try:
        return [str(current_folder())]
    except OSError:
        return []


def _now() -> datetime:
    return datetime.now(UTC)


# --- commands ------------------------------------------------------------------------------------


def read_store(index: Index, *, project: Path | None = None) -> Snapshot:
    """Return a snapshot of all sessions in the store.

    `project`: the folder whose sessions are wanted; sessions stored under the hash of its path are
    assigned to it. Raises StoreUnreadable if none of the store can be read.
    """
    if project is not None:
        index.expect(project)
    snapshot = index.load()
    require_readable(index.home, snapshot.state, snapshot.unreadable)
    return snapshot


def latest_to_resume(index: Index, folder: Path, agent: Agent | None = None) -> Summary:
    """Return the session of `folder` that was updated last, of those that the CLI can resume.

    `agent`: consider only this agent's sessions.
    If there are only others, return the newest of these, so that the caller can say why it isn't
    resumed. Gemini CLI's own `latest` is the session that was started last. Raises SessionNotFound
    or StoreUnreadable.
    """
    latest = LATEST if agent is None else f"{agent}:{LATEST}"
    with suppress(SessionNotFound):
        return index.find(latest, project=folder, accept=attrgetter("continuable"))
    return index.find(latest, project=folder, scan=False)


def find_session(index: Index, wanted: str, *, project: Path | None, here: Path | None) -> Summary:
    """Return the session for a full id, a unique prefix, a file's path, or `latest`.

    `project`: consider only this folder's sessions. If it is None, `latest` means the newest
    session of the folder `here`, or of all folders if `here` is None or has no sessions; and if
    several sessions have the same id, the one in `here` is chosen. Raises SessionNotFound,
    SessionAmbiguous, or StoreUnreadable.
    """
    if project is not None or here is None:
        return index.find(wanted, project=project)
    if wanted.strip() == LATEST:
        with suppress(SessionNotFound):
            return index.find(wanted, project=here)
        return index.find(wanted, scan=False)
    try:
        return index.find(wanted)
    except SessionAmbiguous:
        with suppress(SessionNotFound, SessionAmbiguous):
            mine = index.find(wanted, project=here, scan=False)
            if mine.id == wanted.strip():
                return mine
        raise


def _is_session_file(path: Path, home: Path) -> bool:
    """Return whether a path has the name of a session file and is not a folder.

    The file may have been deleted since.
    """
    try:
        return name_of(path, home) is not None and not stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
