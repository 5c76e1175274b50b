"""Reads multipart/form-data bodies, as HTML forms and LibreTranslate's own page send them."""

from __future__ import annotations

from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP


def multipart_fields(content_type: str, body: bytes) -> dict[str, str]:
    """The fields of a body; files are taken for text.

    Args:
        content_type: the header with the boundary.

    Raises:
        ValueError: the body is not what the header says, or holds no UTF-8.
    """
    message = BytesParser(EmailMessage, policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    fields = {}
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        if not isinstance(content, bytes):
            raise ValueError("it has a part without content")
        fields[str(part.get_param("name", header="content-disposition"))] = content.decode("utf-8")
    return fields
