"""Deliveries by e-mail: a plain text to a mailbox, by the SMTP server of the settings."""

from __future__ import annotations

import re
import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from triplewire.deliver.messages import Channel, Message, Outcome
from triplewire.errors import ArgumentError, TriplewireError

_MAILBOX = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_MOST_SUBJECT = 200
_PORTS = {"smtp": 25, "smtps": 465}


def mailbox_of(address: str) -> str:
    """The mailbox of `mailto:NAME@HOST` (RFC 6068, without fields). Raises `ArgumentError`."""
    mailbox = unquote(address.removeprefix("mailto:"))
    if not _MAILBOX.fullmatch(mailbox):
        raise ArgumentError("this is not mailto:NAME@HOST")
    return mailbox


class Mail(Channel):
    """Sends events as messages."""

    def check(self, address: str) -> None:
        """Raises `ArgumentError` where it is no mailbox, and `TriplewireError` where no mail can be sent."""
        mailbox_of(address)
        self._server()

    def _server(self) -> tuple[bool, str, int]:
        parts = urlsplit(self._settings.smtp)
        if parts.scheme not in _PORTS or not parts.hostname or not self._settings.mail_from:
            remedy = "set smtp to smtp://HOST:PORT or smtps://HOST:PORT, and mail_from to a mailbox"
            raise TriplewireError("this service has no server for mail", remedy=remedy)
        return parts.scheme == "smtps", parts.hostname, parts.port or _PORTS[parts.scheme]

    def send(self, message: Message) -> Outcome:
        """One try. A mailbox that the server refuses for good (5xx) is gone."""
        settings, mailbox = self._settings, mailbox_of(message.target.address)
        is_secure, host, port = self._server()
        mail = EmailMessage()
        mail["From"], mail["To"] = settings.mail_from, mailbox
        mail["Subject"] = _line(message.title)[:_MOST_SUBJECT]
        mail["Date"] = message.date
        mail["Message-ID"] = f"<{message.id}.triplewire@{settings.mail_from.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"  # RFC 3834, section 5
        mail.set_content(message.text().encode("utf-8", "replace").decode())
        try:
            context = ssl.create_default_context()
            server = (
                smtplib.SMTP_SSL(host, port, timeout=settings.delivery_seconds, context=context)
                if is_secure
                else smtplib.SMTP(host, port, timeout=settings.delivery_seconds)
            )
            try:
                if not is_secure and settings.smtp_user:  # a password goes over no open line
                    server.starttls(context=context)
                if settings.smtp_user:
                    server.login(settings.smtp_user, settings.smtp_password)
                server.send_message(mail)
                with suppress(OSError, smtplib.SMTPException):  # it has been taken, whatever comes now
                    server.quit()
            finally:
                server.close()
        except smtplib.SMTPRecipientsRefused as error:
            code, said = error.recipients[mailbox]
            return Outcome(f"{code} {said.decode(errors='replace')}"[:200], is_gone=code >= 500)
        except smtplib.SMTPResponseException as error:
            said = error.smtp_error if isinstance(error.smtp_error, bytes) else str(error.smtp_error).encode()
            return Outcome(f"{error.smtp_code} {said.decode(errors='replace')}"[:200])
        except (OSError, smtplib.SMTPException) as error:
            return Outcome(f"the server for mail cannot be reached: {error}"[:200], of_target=True)
        return Outcome("250 accepted", is_delivered=True)


def _line(text: str) -> str:
    """A text that may stand in the head of a message."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
