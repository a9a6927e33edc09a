"""The webhook's certificate: an authority of its own and the certificates it signs, shared by all replicas in
one Secret.

Creating and judging certificates is pure except for randomness. The authority outlives many certificates and
is never replaced together with one: API servers learn a new authority days before it signs anything.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER
from schemas.errors import Fault

SECRET = "egs-admission"  # noqa: S105 - the name of a Secret
SERVING = timedelta(days=90)
RENEW = timedelta(days=30)
"""A certificate with less remaining validity is renewed."""
AUTHORITY = timedelta(days=3650)
REPLACE = timedelta(days=365)
"""An authority with less remaining validity gets a successor."""
LEARNING = timedelta(days=7)
"""A new authority signs nothing until API servers have known it for this long."""
SKEW = timedelta(hours=1)
"""Valid from a little earlier, for clocks that are behind."""
TRIES = 3

_FIELDS = ("authorities", "authority_key", "chain", "key")
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """The webhook's certificate and its authorities; all PEM. Never printed: two fields are secret."""

    authorities: bytes  # the newest first; all that may have signed a certificate still in use
    authority_key: bytes  # of the newest
    chain: bytes
    key: bytes


def current(kept: Certificate | None, names: Sequence[str], now: datetime) -> Certificate:
    """The certificate to use: `kept` itself as long as it is valid. `names` are DNS names and IP addresses."""
    if kept is None:
        return _new(names, now)
    try:
        authorities = x509.load_pem_x509_certificates(kept.authorities)
        shown = x509.load_pem_x509_certificate(kept.chain)
        whole = _pairs(authorities[0], kept.authority_key) and _pairs(shown, kept.key)
    except ValueError:
        return _new(names, now)
    if not whole or authorities[0].not_valid_after_utc < now + SERVING:
        return _new(names, now)
    if _due(shown, authorities, names, now):
        return _signed(kept, names, now)
    settled = shown.not_valid_after_utc > now + RENEW + LEARNING
    if authorities[0].not_valid_after_utc < now + REPLACE and settled:
        return _succeeded(kept, authorities, now)
    return kept


def shared(api: Api, namespace: str, names: Sequence[str], now: datetime) -> Certificate:
    """The certificate shared by all replicas, made or renewed by the first one that needs it."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for _ in range(TRIES):
        found = api.find(f"{path}/{SECRET}")
        kept = None if found is None else _from_secret(found)
        wanted = current(kept, names, now)
        if wanted == kept:
            return wanted
        try:
            if found is None:
                api.create(path, _to_secret(wanted, namespace))
            else:
                api.replace(f"{path}/{SECRET}", {**found, "data": _to_secret(wanted, namespace)["data"]})
        except Rejected as no:
            if no.status != 409:
                raise
            continue  # another replica was faster: we use its certificate too
        return wanted
    raise Fault(
        f"Secret {namespace}/{SECRET} is changed constantly; check what else writes it", "AdmissionBroken"
    )


def authorities(api: Api, namespace: str) -> bytes | None:
    """PEM of the authorities of this cluster's webhook; None: no webhook has ever run there."""
    found = api.find(f"/api/v1/namespaces/{namespace}/secrets/{SECRET}")
    kept = None if found is None else _from_secret(found)
    return None if kept is None else kept.authorities


def _new(names: Sequence[str], now: datetime) -> Certificate:
    certificate, key = _authority(now)
    return _signed(Certificate(_pem(certificate), _private(key), b"", b""), names, now)


def _signed(kept: Certificate, names: Sequence[str], now: datetime) -> Certificate:
    """A new certificate of the newest authority that API servers know."""
    authority = x509.load_pem_x509_certificates(kept.authorities)[0]
    signer = _loaded(kept.authority_key)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _built(_name(names[0]), authority.subject, key, now, SERVING)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    chain = builder.sign(signer, hashes.SHA256())
    return Certificate(kept.authorities, kept.authority_key, _pem(chain), _private(key))


def _succeeded(kept: Certificate, known: Sequence[x509.Certificate], now: datetime) -> Certificate:
    """With a successor of the authority, which signs nothing yet."""
    certificate, key = _authority(now)
    living = [found for found in known if found.not_valid_after_utc > now]
    bundle = b"".join(_pem(found) for found in (certificate, *living))
    return Certificate(bundle, _private(key), kept.chain, kept.key)


def _authority(now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"egs admission {now:%Y-%m-%d}")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _built(name, name, key, now, AUTHORITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return builder.sign(key, hashes.SHA256()), key


def _built(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
    )


def _due(
    shown: x509.Certificate, known: Sequence[x509.Certificate], names: Sequence[str], now: datetime
) -> bool:
    """True if it ends soon, is for other names, or has an unknown authority."""
    extension = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    other = list(extension) != [_general(name) for name in names]
    return shown.not_valid_after_utc < now + RENEW or other or not any(_issued(shown, by) for by in known)


def _issued(shown: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        shown.verify_directly_issued_by(by)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _pairs(certificate: x509.Certificate, key: bytes) -> bool:
    return certificate.public_key() == _loaded(key).public_key()


def _loaded(key: bytes) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(key, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise ValueError("an unexpected kind of key")
    return found


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _to_secret(certificate: Certificate, namespace: str) -> Json:
    values = (getattr(certificate, field) for field in _FIELDS)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": SECRET, "namespace": namespace, "labels": {MANAGED_BY: MANAGER}},
        "data": {key: base64.b64encode(value).decode() for key, value in zip(_KEYS, values, strict=True)},
    }


def _from_secret(found: Json) -> Certificate | None:
    """None if it was emptied or damaged: it is then made again."""
    data = found.get("data") or {}
    try:
        return Certificate(*(base64.b64decode(data[key], validate=True) for key in _KEYS))
    except (KeyError, ValueError, TypeError):
        return None
