"""Which file system a folder is on: over a network nobody tells us about changes."""

from __future__ import annotations

import os
from pathlib import Path

_NETWORK = frozenset(
    {"9p", "afpfs", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "macfuse", "nfs"}
    | {"nfs4", "osxfuse", "smb3", "smbfs", "vboxsf", "webdav"}
)


def network_file_system(path: Path) -> str | None:
    """The kind of network or shared file system that `path` is on; None if it is a local one, or
    the system does not say.
    """
    import psutil  # 20 ms that only a watch needs

    try:
        real = os.path.realpath(path)
        partitions = psutil.disk_partitions(all=True)
    except OSError:
        return None
    mounts = [(each.mountpoint.rstrip("/") + "/", each.fstype) for each in partitions]
    above = [mount for mount in mounts if (real + "/").startswith(mount[0])]
    kind = max(above, key=lambda mount: len(mount[0]), default=("", ""))[1]
    return kind if kind in _NETWORK else None
