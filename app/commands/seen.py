"""The sign that a comment was read."""

from __future__ import annotations

from app.commands.gather import Place, Where
from app.domain.effects import React, Reaction


def seen(place: Place) -> tuple[React, ...]:
    """A reaction to the comment, where one can be given."""
    if place.where is Where.REVIEW:
        return ()
    return (React(place.comment_id, Reaction.EYES, inline=place.where is Where.THREAD),)
