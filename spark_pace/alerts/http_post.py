"""Posts alerts to an address, as a JSON array."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from urllib3 import BaseHTTPResponse, PoolManager
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InvalidHeader,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    TimeoutError,
)
from urllib3.util import Retry, Timeout

from spark_pace.alerts.sender import Alert, Refusal, SendError
from spark_pace.errors import one_line
from spark_pace.job_file.alert_targets import HttpAddress

# what these say holds for every alert until the job or its place is corrected: the alerts wait
_WAIT = {401, 403, 404, 407, 408, 425, 429}
_NOT_TAKEN = {401, 403, 404, 407, 425, 429}
_NOT_SENT = (NewConnectionError, ConnectTimeoutError, NameResolutionError)
_REPLY_BYTES = 500


class HttpPost:
    """Posts to one address over one connection, which it keeps."""

    def __init__(self, to: HttpAddress, timeout_us: int) -> None:
        """Take an address without references to the environment."""
        self._seconds = timeout_us / 1e6
        self.most_rows = to.most_rows
        self._to = to
        timeout = Timeout(connect=self._seconds, read=self._seconds)
        self._pool = PoolManager(num_pools=1, retries=False, timeout=timeout)
        # while alerts that were refused together are posted one by one: by id, those that are settled
        self._settled: dict[str, Refusal | None] | None = None

    def send(self, alerts: Sequence[Alert]) -> list[Refusal]:
        """Post alerts. If they are refused together, each is posted alone, so that only the bad ones are.

        After a failure in between, the next call goes on with those that are left.
        """
        if self._settled is None:
            refused = self._post(alerts)
            if refused is None:
                return []
            if len(alerts) == 1:
                return [Refusal(alerts[0], *refused)]
            self._settled = {}
        settled = self._one_by_one(alerts, self._settled)
        self._settled = None
        return [refusal for refusal in settled.values() if refusal is not None]

    def _one_by_one(
        self, alerts: Sequence[Alert], settled: dict[str, Refusal | None]
    ) -> dict[str, Refusal | None]:
        """Post each alert that is not settled, and note it in `settled`."""
        for alert in alerts:
            if alert.id in settled:
                continue
            try:
                refused = self._post([alert])
            except SendError as error:
                error.may_have_arrived |= bool(settled)
                raise
            settled[alert.id] = None if refused is None else Refusal(alert, *refused)
        return settled

    def close(self) -> None:
        """Close the connection."""
        self._pool.clear()

    def _post(self, alerts: Sequence[Alert]) -> tuple[str, str] | None:
        """Post alerts; the code and the beginning of the reply if they are refused, else None."""
        body = f"[{','.join(alert.text for alert in alerts)}]".encode()
        try:
            answer = self._pool.request(
                "POST",
                self._to.url,
                body=body,
                headers=self._headers(),
                redirect=False,
                preload_content=False,
            )
        except HTTPError as error:
            came = not isinstance(error, _NOT_SENT)
            raise SendError(_told(error, self._seconds), may_have_arrived=came) from error
        reply, status = _reply(answer), answer.status
        if 200 <= status < 300:
            return None
        if 400 <= status < 500 and status not in _WAIT:
            return str(status), reply
        pause = _asked_pause(answer)
        raise SendError(_named(status), may_have_arrived=status not in _NOT_TAKEN, pause_seconds=pause)

    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", "User-Agent": "spark_pace", **self._to.headers}


def _reply(answer: BaseHTTPResponse) -> str:
    """The first characters of a reply; the connection is kept if that was all."""
    try:
        read = answer.read(_REPLY_BYTES)
    except HTTPError:  # the code was read, and it decides
        read = b""
    if answer.closed:
        answer.release_conn()
    else:
        answer.close()
    return one_line(read.decode("utf-8", "replace"), _REPLY_BYTES)


def _asked_pause(answer: BaseHTTPResponse) -> float | None:
    try:
        return Retry().get_retry_after(answer)
    except InvalidHeader:
        return None


def _named(status: int) -> str:
    known = {code.value: code.phrase for code in HTTPStatus}
    return f"{status} {known.get(status, '')}".rstrip()


def _told(error: HTTPError, seconds: float) -> str:
    """The error in one line, without the address, which may be a secret."""
    cause: BaseException = error
    while (below := cause.__cause__ or cause.__context__) is not None:
        cause = below
    if isinstance(cause, OSError) and cause.strerror:
        return one_line(cause.strerror)
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    return "a connection that was closed" if isinstance(error, ProtocolError) else type(error).__name__
