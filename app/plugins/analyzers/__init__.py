"""`analyzers`: what linters say about the changed lines, as evidence for the reviewers.

An analyzer's word reaches no page by itself. It runs on copies of the changed files alone, under
names of ours and with our configuration, so that nothing in a repository can steer it.
"""

from app.plugins.analyzers.plugin import AnalyzersPlugin
from app.plugins.analyzers.port import Analyzer, Remark

__all__ = ["Analyzer", "AnalyzersPlugin", "Remark"]
