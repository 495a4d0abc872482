"""From the body of a request to the inputs of the network, in whatever form the rows come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import final

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from calibayes.files.image_coding import ImageCoding
from calibayes.files.model import Model
from calibayes.files.prediction_notes import BlockObserver, missing_line, unseen_line
from calibayes.service.joint_encoding import EncodedRows, JointEncoder
from calibayes.service.json_rows import JsonRows, json_rows, rows_as_block
from calibayes.service.request_errors import RequestError
from calibayes.service.row_limits import RowLimits
from calibayes.service.uploads import IMAGES, TABLES, ending_of, uploaded_rows
from calibayes.tables import RowBlock, TableOptions
from calibayes.wording import listed, megabytes, shown

__all__ = ["RequestReader", "read_body"]

_MULTIPART, _JSON = "multipart/form-data", "application/json"
_BRIEF = 1 << 16  # bytes, and cells: a shorter body is read in the event loop, sooner than another thread would begin
_DISCARDED = 1 << 28  # bytes of a body that is too long, read so that the client gets to see the answer


async def read_body(request: Request, most: int) -> bytes:
    """Read the body of a request; raise if it has more than ``most`` bytes."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            chunks.append(chunk)
        elif size > most + _DISCARDED:
            break
    if size > most:
        raise RequestError(413, f"The body has more than {megabytes(most)}, the most that is taken. Send the rows in parts.")
    return b"".join(chunks)


@final
class RequestReader:
    """Turns the rows of requests into inputs of a model's network.

    Args:
        model: a trained model.
        options: the format of texts.
        most_rows: of a request.
    """

    def __init__(self, model: Model, options: TableOptions, most_rows: int) -> None:
        self._model, self._options = model, options
        self._observer = BlockObserver(model, None)
        self._limits = RowLimits(most_rows, frozenset(model.coding.needs))
        self._images = isinstance(model.coding, ImageCoding)
        self._used = {*model.coding.needs, model.target, *model.identifiers}
        self._threads = ThreadPoolExecutor(2, "reader")
        self._joint = JointEncoder(self._encoded_together)

    async def read(self, headers: Headers, body: bytes) -> EncodedRows:
        """Encode the rows of a body: JSON, a table, an image, or a form with one file."""
        media_type = headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type == _JSON and not self._images and self._is_brief(body):
            return await self._joint.encode(json_rows(body, self._options, self._limits))
        run = asyncio.get_running_loop().run_in_executor
        if media_type == _JSON and not self._images:
            return await run(self._threads, self._json, body)
        if media_type == _MULTIPART:
            body, ending = await _form_file(headers, body)
        elif media_type in TABLES | IMAGES:
            ending = ending_of("", media_type)
        elif self._images:
            raise self._not_an_image()
        else:
            accepted = ", ".join([_JSON, *TABLES, _MULTIPART])
            raise RequestError(415, f"The content type {shown(media_type)} cannot be read: send one of {accepted}.")
        return await run(self._threads, self._upload, body, ending)

    def close(self) -> None:
        """Wait for what is being read."""
        self._threads.shutdown()

    def _json(self, body: bytes) -> EncodedRows:
        return self._encoded(rows_as_block([json_rows(body, self._options, self._limits)], self._options))

    def _is_brief(self, body: bytes) -> bool:
        """Return True if a JSON body takes little time: rows that leave out most of many columns are short, but do not."""
        return len(body) <= _BRIEF and body.count(b"{") * len(self._limits.needed) <= _BRIEF

    def _upload(self, data: bytes, ending: str) -> EncodedRows:
        image = ending in IMAGES.values()
        if self._images and not image:
            raise self._not_an_image()
        if image and not self._images:
            needs = listed(self._model.coding.needs)
            raise RequestError(415, f"This model does not classify images, but rows with the columns {needs}. Send those.")
        with uploaded_rows(data, ending, self._options, self._limits) as block:
            return self._encoded(block)

    def _encoded_together(self, requests: Sequence[JsonRows]) -> list[EncodedRows]:
        """Encode the rows of requests with the same columns; notes on cells are on those of one request."""
        block = rows_as_block(requests, self._options)
        inputs = self._model.encode(block)
        if len(requests) > 1 and self._observer.notices(block):
            notes = [self._notes(rows_as_block([alone], self._options)) for alone in requests]
        else:
            notes = [self._notes(block)] * len(requests)
        return list(map(EncodedRows, inputs.split([each.rows for each in requests]), notes))

    def _encoded(self, block: RowBlock) -> EncodedRows:
        return EncodedRows(self._model.encode(block), self._notes(block))

    def _notes(self, block: RowBlock) -> list[str]:
        unused = [name for name in block.table.column_names if name not in self._used]
        notes = [f"Columns not used: {listed(unused)}."] if unused else []
        lines = (unseen_line(name, *counts) for name, counts in self._observer.unseen(block).items())
        notes += [line for line in lines if line is not None]
        if missing := self._observer.missing(block):
            notes.append(missing_line(missing))
        return notes

    def _not_an_image(self) -> RequestError:
        return RequestError(
            415,
            "This model classifies images: upload a PNG or JPEG image, as the body or as the file of a form. Paths in requests "
            "are never read.",
        )


async def _form_file(headers: Headers, body: bytes) -> tuple[bytes, str]:
    """Return the one file of a form, and its kind."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await MultiPartParser(headers, stream(), max_files=1, max_fields=8).parse()
    except MultiPartException as error:
        raise RequestError(400, f"The form cannot be read: {error.message} Send one file in a field 'file'.") from None
    except (LookupError, ValueError) as error:
        raise RequestError(400, f"The form cannot be read ({shown(error)}). Send one file in a field 'file'.") from None
    upload = next((value for _, value in form.multi_items() if isinstance(value, UploadFile)), None)
    if upload is None:
        raise RequestError(400, "There is no file in the form. Send one in a field 'file'.")
    try:
        ending = ending_of(upload.filename or "", (upload.content_type or "").split(";")[0].strip().lower())
        return await upload.read(), ending
    finally:
        await form.close()
