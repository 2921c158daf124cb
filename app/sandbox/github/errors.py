"""GitHub's refusals, with its own words and its own JSON."""

from __future__ import annotations

from collections.abc import Mapping

DOCS = "https://docs.github.com/rest"


class ApiError(Exception):
    """An answer other than success. `fields` are added to the JSON body."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: list[object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = dict(headers or {})

    def body(self) -> dict[str, object]:
        """GitHub's error JSON."""
        payload: dict[str, object] = {"message": self.message}
        if self.errors is not None:
            payload["errors"] = self.errors
        return {**payload, "documentation_url": DOCS, "status": str(self.status)}


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def bad_credentials() -> ApiError:
    return ApiError(401, "Bad credentials")


def forbidden(accepted: str) -> ApiError:
    """A permission is missing; `accepted` in the notation of `X-Accepted-GitHub-Permissions`."""
    return ApiError(
        403,
        "Resource not accessible by integration",
        headers={"X-Accepted-GitHub-Permissions": accepted},
    )


def unprocessable(*messages: str) -> ApiError:
    """The form in which reviews are refused: a list of plain strings."""
    return ApiError(422, "Unprocessable Entity", errors=list(messages))


def validation_failed(resource: str, code: str, field: str, message: str | None = None) -> ApiError:
    """The form with one structured error."""
    error = {"resource": resource, "code": code, "field": field}
    if message is not None:
        error["message"] = message
    return ApiError(422, "Validation Failed", errors=[error])


def missing_field(resource: str, field: str) -> ApiError:
    return validation_failed(resource, "missing_field", field)
