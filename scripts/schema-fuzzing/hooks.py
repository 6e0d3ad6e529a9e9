"""Keeps generated calls from waiting, and from revoking the token that they are made with."""

import os

import schemathesis

# A claim or a read that waits does nothing else, so a short wait shows as much as a long one.
WAIT_MS_MAX = 20
CLAIM_WAIT_MS_LIMIT = 30_000
READ_WAIT_MS_LIMIT = 60_000

CLAIMS = ("/internal/worker/claim", "/v1/worker/claim")
# fern_<id>_<secret>
OWN_TOKEN_IDS = {token.split("_")[1] for token in os.environ["FERNERY_FUZZ_TOKENS"].split()}


def is_long(value, limit):
    return type(value) is int and WAIT_MS_MAX < value <= limit


def as_number(value):
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.path in CLAIMS and isinstance(case.body, dict):
        # Absent and null mean five seconds. What is out of bounds, or no number at all, is left for the server to refuse.
        wait = case.body.get("max_wait_ms")
        if wait is None or is_long(wait, CLAIM_WAIT_MS_LIMIT):
            case.body["max_wait_ms"] = WAIT_MS_MAX
    if case.query and is_long(as_number(case.query.get("wait_ms")), READ_WAIT_MS_LIMIT):
        case.query["wait_ms"] = WAIT_MS_MAX
    if case.path == "/v1/tokens/{id}" and (case.path_parameters or {}).get("id") in OWN_TOKEN_IDS:
        case.path_parameters["id"] = "none"
