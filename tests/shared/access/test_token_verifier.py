"""Which tokens are taken; why others are not stands in the log, without the token."""

from __future__ import annotations

import json
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from services.shared.access.jwks import read_jwks
from services.shared.access.refused import Refused
from services.shared.access.token_verifier import TokenVerifier
from tests.shared.access.signer import Signer

ALL = ("RS256", "PS256", "ES256", "EdDSA")


@pytest.fixture(scope="session")
def verifier(signer: Signer, tmp_path_factory: pytest.TempPathFactory) -> TokenVerifier:
    path = tmp_path_factory.mktemp("jwks") / "jwks.json"
    settings = signer.settings(path, algorithms=ALL, leeway_s=10)
    keys = read_jwks(path)
    return TokenVerifier(settings, lambda: keys)


def cause(verifier: TokenVerifier, token: str) -> str:
    with pytest.raises(Refused) as caught:
        verifier.caller(token)
    assert caught.value.__cause__ is None
    assert len(token) < 8 or token not in str(caught.value)
    return caught.value.cause


@pytest.mark.parametrize("algorithm", ALL)
def test_a_good_token_names_its_tenant_and_hides_its_subject(
    verifier: TokenVerifier, signer: Signer, algorithm: str
) -> None:
    caller = verifier.caller(signer.token(algorithm=algorithm))
    assert caller.tenant == "acme"
    assert caller.key_id is not None
    assert re.fullmatch("jwt_[0-9a-f]{12}", caller.key_id)


def test_the_audience_may_be_one_of_several(verifier: TokenVerifier, signer: Signer) -> None:
    assert verifier.caller(signer.token({"aud": ["x", "tokenway"]})).tenant == "acme"


def test_clocks_may_differ_by_the_leeway_and_no_more(
    verifier: TokenVerifier, signer: Signer
) -> None:
    now = int(time.time())
    near = {"exp": now - 5, "nbf": now + 5, "iat": now + 5}
    assert verifier.caller(signer.token(near)).tenant == "acme"
    assert cause(verifier, signer.token({"exp": now - 60})) == "expired token"
    assert cause(verifier, signer.token({"nbf": now + 600})) == "token of later"
    assert cause(verifier, signer.token({"iat": now + 600})) == "token of later"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": None}, "token without exp, iss or aud"),
        ({"aud": None}, "token without exp, iss or aud"),
        ({"iss": None}, "token without exp, iss or aud"),
        ({"aud": "other"}, "token for another audience"),
        ({"aud": 7}, "token for another audience"),
        ({"iss": "https://other.test"}, "token of another issuer"),
        ({"exp": "soon"}, "malformed token"),
        ({"tenant": None}, "token without a tenant"),
        ({"tenant": 7}, "token without a tenant"),
        ({"tenant": ["acme"]}, "token without a tenant"),
        ({"tenant": "a\nb"}, "token without a tenant"),
        ({"tenant": "x" * 65}, "token without a tenant"),
        ({"pad": "x" * 8000}, "token that is too long"),
    ],
)
def test_claims_that_are_wrong(
    verifier: TokenVerifier, signer: Signer, claims: dict[str, Any], why: str
) -> None:
    assert cause(verifier, signer.token(claims)) == why


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"kid": "other"}, "token of another key"),
        ({"kid": None}, "token of another key"),
        ({"kid": "ec"}, "token of an algorithm that does not count"),
        ({"crit": ["exp"]}, "malformed token"),
        ({"crit": ["b64"], "b64": True}, "malformed token"),
    ],
)
def test_headers_that_are_wrong(
    verifier: TokenVerifier, signer: Signer, headers: dict[str, Any], why: str
) -> None:
    assert cause(verifier, signer.token(headers=headers)) == why


def part(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(signer: Signer) -> str:
    _, claims, _ = signer.token().split(".")
    return f"{part({'alg': 'none', 'kid': 'rsa'})}.{claims}."


def signed_with_the_public_key(signer: Signer) -> str:
    """The classic: the public key, which everybody has, taken for a secret."""
    pem = signer.rsa.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _, claims, _ = signer.token().split(".")
    message = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{claims}"
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = urlsafe_b64encode(algorithm.sign(message.encode(), pem)).rstrip(b"=").decode()
    return f"{message}.{signature}"


def of_another_signer(_: Signer) -> str:
    return Signer().token()


def of_an_algorithm_beyond_the_list(signer: Signer) -> str:
    return signer.token(algorithm="RS512")


def changed(signer: Signer) -> str:
    head, claims, signature = signer.token().split(".")
    read = json.loads(urlsafe_b64decode(claims + "=="))
    return f"{head}.{part(read | {'tenant': 'other'})}.{signature}"


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (unsigned, "token of an algorithm that does not count"),
        (signed_with_the_public_key, "token of an algorithm that does not count"),
        (of_an_algorithm_beyond_the_list, "token of an algorithm that does not count"),
        (of_another_signer, "token with a wrong signature"),
        (changed, "token with a wrong signature"),
    ],
)
def test_forged_tokens(
    verifier: TokenVerifier, signer: Signer, forge: Callable[[Signer], str], why: str
) -> None:
    assert cause(verifier, forge(signer)) == why


DEEP = urlsafe_b64encode(b'{"alg":' + b"[" * 3000).decode()


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b.c", "é.é.é", f"{DEEP}.e30.x", f"{part([])}.e30.x", "\0.\0.\0", "a" * 9000],
)
def test_what_is_no_token(verifier: TokenVerifier, token: str) -> None:
    assert cause(verifier, token) in {
        "malformed token",
        "token that is too long",
        "token of another key",
    }


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_no_text_does_more_than_be_refused(verifier: TokenVerifier, text: str) -> None:
    for token in (text, f"{part({'alg': 'RS256', 'kid': text})}.{part(text)}.{text}"):
        with pytest.raises(Refused):
            verifier.caller(token)


def test_a_key_that_is_taken_away_verifies_no_more(signer: Signer, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    settings = signer.settings(path)
    keys = read_jwks(path)
    verifier = TokenVerifier(settings, lambda: keys)
    token = signer.token()
    assert verifier.caller(token).tenant == "acme"
    keys = {name: key for name, key in keys.items() if name != "rsa"}
    assert cause(verifier, token) == "token of another key"
