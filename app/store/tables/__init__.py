"""Every table. Importing this module fills `METADATA`, which the migrations are compared with.

Row classes are plain data: what may happen to them is in `commands`, what may be asked of them in
`queries`. Names carry `Row` only where `app.domain` has a class of the same name.
"""

from __future__ import annotations

from sqlmodel import SQLModel

from app.store.tables.forge import Installation, PullRequestRow, Repository
from app.store.tables.jobs import DecisionRow, DeliveryRow, Job, JobStep
from app.store.tables.reviews import FindingRow, Publication, ReviewerRun, ReviewRun, ThreadRow
from app.store.tables.spend import SpendDay, SpendNotice
from app.store.tables.tasks import FixTask, FixTaskFinding, Lineage, Order

METADATA = SQLModel.metadata

__all__ = [
    "METADATA",
    "DecisionRow",
    "DeliveryRow",
    "FindingRow",
    "FixTask",
    "FixTaskFinding",
    "Installation",
    "Job",
    "JobStep",
    "Lineage",
    "Order",
    "Publication",
    "PullRequestRow",
    "Repository",
    "ReviewRun",
    "ReviewerRun",
    "SpendDay",
    "SpendNotice",
    "ThreadRow",
]
