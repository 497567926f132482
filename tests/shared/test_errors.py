"""Every error that a caller may read has its place on the wire."""

from __future__ import annotations

import grpc

from services.shared.errors import WIRE, Code, Internal, ServiceError, error_of


def subclasses(cls: type[ServiceError]) -> set[type[ServiceError]]:
    below = set(cls.__subclasses__())
    return below.union(*(subclasses(sub) for sub in below))


def test_every_error_class_is_in_the_table() -> None:
    own = {cls for cls in subclasses(ServiceError) if cls.__module__ == ServiceError.__module__}
    assert own == set(WIRE)


def test_codes_are_those_of_grpc() -> None:
    theirs = {status.name: status.value[0] for status in grpc.StatusCode}
    assert {code.name: int(code) for code in Code} == {
        name: value for name, value in theirs.items() if name != "OK"
    }


def test_http_statuses_are_errors_and_an_error_tells_its_own() -> None:
    assert all(400 <= wire.http_status < 600 for wire in WIRE.values())
    told = Internal("internal error", field="x")
    assert (told.code, told.http_status, told.field) == (Code.INTERNAL, 500, "x")


def test_what_another_service_told_becomes_an_error_of_the_same_code() -> None:
    for code in Code:
        error = error_of(code, "why", "field")
        assert (error.message, error.field) == ("why", "field")
        assert error.code == code or type(error) is Internal
    covered = {wire.code for wire in WIRE.values()}
    assert covered <= {error_of(code, "").code for code in Code}
