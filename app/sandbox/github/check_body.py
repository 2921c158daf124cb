"""The body of a check run request with GitHub's limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.sandbox.github import rules
from app.sandbox.github.endpoint import invalid_request
from app.sandbox.github.errors import ApiError

Text = Annotated[str, Field(max_length=rules.MAX_CHECK_TEXT)]
Number = Annotated[int, Field(strict=True, ge=0)]
Time = Annotated[datetime, Field(strict=False), AfterValidator(lambda at: at.astimezone(UTC))]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class Annotation(_Body):
    path: str
    start_line: Number
    end_line: Number
    start_column: Number | None = None
    end_column: Number | None = None
    annotation_level: Literal["notice", "warning", "failure"]
    message: Annotated[str, Field(max_length=rules.MAX_BODY)]
    title: Annotated[str, Field(max_length=rules.MAX_TITLE)] | None = None
    raw_details: Annotated[str, Field(max_length=rules.MAX_BODY)] | None = None

    @model_validator(mode="after")
    def _columns_on_one_line(self) -> Self:
        columns = (self.start_column, self.end_column)
        if columns != (None, None) and self.start_line != self.end_line:
            raise ValueError("columns can only be given when start_line equals end_line")
        return self


class Output(_Body):
    title: Annotated[str, Field(max_length=rules.MAX_TITLE)] | None = None
    summary: Text
    text: Text | None = None
    annotations: Annotated[list[Annotation], Field(max_length=rules.MAX_ANNOTATIONS)] = []


class Action(_Body):
    label: Annotated[str, Field(max_length=20)]
    description: Annotated[str, Field(max_length=40)]
    identifier: Annotated[str, Field(max_length=20)]


class CheckBody(_Body):
    """What creation and update share; creation needs name and head besides."""

    name: str | None = None
    head_sha: str | None = None
    status: Literal["queued", "in_progress", "completed"] | None = None
    conclusion: (
        Literal[
            "action_required",
            "cancelled",
            "failure",
            "neutral",
            "success",
            "skipped",
            "timed_out",
        ]
        | None
    ) = None
    external_id: str | None = None
    details_url: str | None = None
    started_at: Time | None = None
    completed_at: Time | None = None
    output: Output | None = None
    actions: Annotated[list[Action], Field(max_length=rules.MAX_ACTIONS)] | None = None

    @model_validator(mode="after")
    def _conclusion_when_completed(self) -> Self:
        if self.status == "completed" and self.conclusion is None:
            raise ValueError("conclusion is required when status is completed")
        return self


def parsed(body: Mapping[str, Any]) -> CheckBody:
    """The body, or 422 `Invalid request.` naming the first member that is wrong."""
    try:
        return CheckBody.model_validate(dict(body))
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = "/".join(str(part) for part in first["loc"])
    return invalid_request(f"For 'properties/{where}', {first['msg']}.")
