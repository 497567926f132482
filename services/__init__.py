"""The services of Tokenway and what starts them."""

import os

# gRPC's core reads this once, when it is loaded. It would write lines of its own among ours, which
# are JSON, for everybody who comes without a certificate.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
