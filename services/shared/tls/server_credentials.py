"""Credentials of a server whose certificates may change while it runs."""

from __future__ import annotations

from collections.abc import Callable

import grpc

from services.shared.tls.certificate_files import Certificates


def mutual(certificates: Callable[[], Certificates]) -> grpc.ServerCredentials:
    """Shows our certificate, and takes nobody who shows none of an authority that we trust.

    Args: certificates: as they are now, asked for each connection and from any thread.
    """

    def configuration() -> grpc.ServerCertificateConfiguration:
        ours = certificates()
        return grpc.ssl_server_certificate_configuration([(ours.key, ours.chain)], ours.ca)

    return grpc.dynamic_ssl_server_credentials(
        configuration(), configuration, require_client_authentication=True
    )


def one_sided(certificates: Callable[[], Certificates]) -> grpc.ServerCredentials:
    """Shows our certificate and asks for none: callers prove themselves otherwise."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        ours = certificates()
        return grpc.ssl_server_certificate_configuration([(ours.key, ours.chain)])

    return grpc.dynamic_ssl_server_credentials(configuration(), configuration)
