"""A forge in memory, for tests of stories: the semantics of the real one, and a record of it all.

`World` is what people see; a `RecordingForge` is one App in it. It passes the contract suite that
the GitHub client passes. Set the world up with its methods, run a story, then compare
`forge.effects` (everything asked for, in order) or `forge.written` (what changed something).
"""

from app.forges.recording.forge import RecordingForge
from app.forges.recording.world import Anchors, World

__all__ = ["Anchors", "RecordingForge", "World"]
