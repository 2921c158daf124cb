"""Whether a finding's own words doubt it. Pure; English, as findings are."""

from __future__ import annotations

import re

from app.domain.findings import ReportedFinding

_DOUBT = re.compile(
    r"""\b(?:
        (?:might|may|could)\s+(?:possibly|potentially|perhaps|theoretically|conceivably)
      | (?:possibly|potentially|presumably|conceivably|supposedly|theoretically|perhaps|maybe)
      | (?:might|may)\s+(?:be|not|have|cause|lead|allow|result|break|fail|need|want)
      | could\s+(?:be|lead|cause|result)\s+(?:to|in|an?)?\s*(?:an?\s+)?(?:issue|problem|concern)s?
      | (?:i|we)\s+(?:think|believe|suspect|assume|guess|am\s+not\s+sure|are\s+not\s+sure)
      | (?:i['’]m|we['’]re)\s+not\s+(?:sure|certain)
      | not\s+(?:entirely\s+|quite\s+|fully\s+)?(?:sure|certain|clear)\s+(?:if|whether|that|how)
      | (?:un(?:clear|certain|sure))\s+(?:if|whether|that|how)
      | (?:seems?|appears?)\s+(?:to|like|that|as)
      | (?:could\s+not|couldn['’]t|cannot|can['’]t|did\s+not|didn['’]t|unable\s+to)
        \s+(?:verify|confirm|check|determine)
      | (?:worth|please)\s+(?:verify|verifying|check|checking|confirm|confirming|double-checking)
      | (?:verify|confirm|check|ensure|make\s+sure)\s+(?:that|whether|if)\b
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_CODE = re.compile(r"(`+)[^`]*\1")


def is_hedged(finding: ReportedFinding) -> bool:
    """Whether its title or body says that it may not be so. What is quoted as code is not read,
    and neither is the evidence: that is the repository's own text."""
    return _DOUBT.search(_CODE.sub(" ", f"{finding.title}\n{finding.body}")) is not None
