"""What is wrong with a field is said in our words, by kind; and never what was sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from portal.http.validation_errors import mistake


class Inner(BaseModel):
    """Something inside."""

    size: int


class Wanted(BaseModel):
    """A field of every kind."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=2, max_length=4, pattern="^[a-z]+$")] = "abc"
    count: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    start: Literal["asap", "window"] = "asap"
    ends: bool = True
    clusters: Annotated[list[str], Field(min_length=1, max_length=1)] = ["east"]
    parameters: dict[str, str] = {}
    inner: Inner = Inner(size=1)

    @model_validator(mode="after")
    def _rule(self) -> Wanted:
        if self.name == "no":
            raise ValueError("name something else")
        return self


TABLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"surprise": "hunter2"}, "surprise: there is no such field; leave it out, or correct its name"),
    ({"inner": {}}, "inner.size: this field is required"),
    ({"inner": "hunter2"}, "inner: this must be an object"),
    ({"name": 7}, "name: this must be a text"),
    ({"name": "a"}, "name: this must have at least 2 characters"),
    ({"name": "hunter2"}, "name: this must have at most 4 characters"),
    ({"name": "A7"}, "name: this must match ^[a-z]+$"),
    ({"name": "no"}, "body: name something else"),
    ({"count": 0}, "count: this must be at least 1"),
    ({"count": 10}, "count: this must be at most 9"),
    ({"count": "hunter2"}, "count: this must be a whole number"),
    ({"count": 1.5}, "count: this must be a whole number"),
    ({"count": []}, "count: this must be a whole number"),
    ({"share": 0}, "share: this must be more than 0.0"),
    ({"share": 1}, "share: this must be less than 1.0"),
    ({"share": "hunter2"}, "share: this must be a number"),
    ({"start": "hunter2"}, "start: this must be 'asap' or 'window'"),
    ({"ends": "hunter2"}, "ends: this must be true or false"),
    ({"clusters": "hunter2"}, "clusters: this must be a list"),
    ({"clusters": []}, "clusters: this must have at least 1 item"),
    ({"clusters": ["a", "b"]}, "clusters: this must have at most 1 item"),
    ({"parameters": "hunter2"}, "parameters: this must be an object"),
)


@pytest.mark.parametrize(("sent", "said"), TABLE, ids=[said for _, said in TABLE])
def test_mistakes(sent: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Wanted.model_validate(sent)
    (found,) = [mistake({**error, "loc": ("body", *error["loc"])}) for error in caught.value.errors()]
    assert found == said
    assert "hunter2" not in found


def test_a_body_that_is_no_json() -> None:
    with pytest.raises(ValidationError) as caught:
        Wanted.model_validate_json("{")
    (error,) = caught.value.errors()
    assert mistake({**error, "loc": ("body", 1)}) == "1: this is not valid JSON"
