"""What gemtui asks of the operating system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, threading
from gemtui.system import share_heap, trim_heap
{before}
library = ctypes.CDLL(None)
threads = [threading.Thread(target=library.malloc, args=(1000,)) for _ in range(4)]
for thread in threads:
    thread.start()
trim_heap()
library.malloc_stats()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have one heap")
@pytest.mark.parametrize(("before", "shared"), [("share_heap()", True), ("", False)])
def test_threads_allocate_from_one_heap_if_they_share_it(before: str, shared: bool) -> None:
    words = [sys.executable, "-c", HEAPS.format(before=before)]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (run.stderr.count("Arena") == 1) is shared
