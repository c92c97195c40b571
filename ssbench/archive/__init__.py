"""A folder of stat files with an index, in which runs are found again.

The index is a cache of what is in the files: one that was deleted, copied or damaged is made again from
them. :class:`Archive` opens a folder.
"""

from ssbench.archive.archive import INDEX, Archive
from ssbench.archive.entry import Entry, entry_of

__all__ = ["INDEX", "Archive", "Entry", "entry_of"]
