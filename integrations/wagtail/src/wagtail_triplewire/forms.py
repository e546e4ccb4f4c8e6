"""The forms: a request (figure 14 of the paper), and a document of a template."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import IRI, Request
from wagtail_triplewire.names import name_of
from wagtail_triplewire.rdf import RDF, literal, triples
from wagtail_triplewire.service import Service, ServiceError

_PLACE = re.compile(r"query:(\d+):(\d+): (.*)", re.DOTALL)


@dataclass(frozen=True)
class Trial:
    """A dry run over the last publications. `lines`: the query with its wrong line, and a mark below the place."""

    matched: int = 0
    of: int = 0
    newest: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    fault: str = ""
    line: int = 0
    column: int = 0
    marked: str = ""


def tried(query: str, user: int) -> Trial:
    """Ask the service what a query would have matched. Raises `ServiceError` where it cannot say."""
    try:
        told = Service().call("try", query=query, language="gql", user=name_of(user), most=10)
    except ServiceError as error:
        if error.code not in (400, 422):
            raise
        place = _PLACE.search(str(error))
        if place is None:
            return Trial(fault=str(error))
        line, column, fault = int(place[1]), int(place[2]), place[3]
        text = (query.splitlines() or [""])[min(line, len(query.splitlines()) or 1) - 1]
        return Trial(fault=fault, line=line, column=column, marked=f"{text}\n{' ' * (column - 1)}^")
    return Trial(told["matched"], told["of"], tuple(told["newest"]), tuple(told["warnings"]))


class RequestForm(forms.ModelForm):
    """Title, URL or GQL, description, update interval and categories."""

    class Meta:
        model = Request
        fields = ("title", "url", "query", "description", "interval", "by_mail", "categories")
        labels: ClassVar = {
            "url": _("URL"),
            "query": _("GQL"),
            "interval": _("Update interval"),
            "by_mail": _("Send me mail"),
            "categories": _("Feed categories"),
        }
        help_texts: ClassVar = {
            "title": _("The name of the feed."),
            "url": _("The fully-qualified URL of a feed, whose items you want; or leave it empty, and write GQL."),
            "query": _("What the items of all feeds have to fulfil: SELECT * WHERE (?x, title, ?y)"),
            "description": _("A short description of the feed or the query."),
            "interval": _("How often you want to get mail, if there is news."),
            "categories": _("Under which your feeds are listed, separated by commas."),
        }
        widgets: ClassVar = {"query": forms.Textarea({"rows": 5, "spellcheck": "false"}), "url": forms.URLInput}

    def clean(self) -> dict[str, Any]:
        """Either a URL or GQL, and GQL that the service understands. Where it does not answer, it is asked later."""
        cleaned: dict[str, Any] = super().clean()
        url, query = cleaned.get("url"), cleaned.get("query", "").strip()
        if self.instance.page_id is not None:  # what a transparent subscription asks for is not written by hand
            return {**cleaned, "url": "", "query": self.instance.query}
        if self.errors:
            return cleaned
        if bool(url) == bool(query):
            raise forms.ValidationError(_("Give the URL of a feed, or GQL: one of them."))
        if url and not re.match(IRI, url):
            self.add_error("url", _("This is no address of a feed."))
        self.trial: Trial | None = None
        if query:
            try:
                self.trial = tried(query, self.instance.user_id)
            except ServiceError:
                return cleaned
            if self.trial.fault:
                where = _("Line %d, column %d: ") % (self.trial.line, self.trial.column) if self.trial.line else ""
                self.add_error("query", f"{where}{self.trial.fault}")
        return cleaned

    def save(self, commit: bool = True) -> Request:
        """Sets the query of a feed. Another query is another subscription."""
        request: Request = self.instance
        if request.page_id is None:
            request.kind = Request.Kind.FEED if request.url else Request.Kind.QUERY
            if request.url:
                request.query = f"SELECT ?title FROM <{request.url}> WHERE (?item, title, ?title)"
        return super().save(commit)


class DocumentForm(forms.Form):
    """A field for each property of a template of `TRIPLEWIRE["DOCUMENTS"]`:

    {"Event": {"type": "https://schema.org/Event", "fields": {"name": "https://schema.org/name"}}}
    """

    def __init__(self, name: str, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._template = conf().documents[name]
        self.fields["id"] = forms.CharField(widget=forms.HiddenInput, initial=f"urn:uuid:{uuid.uuid4()}", max_length=60)
        for number, label in enumerate(self._template["fields"]):
            self.fields[label] = forms.CharField(label=label, required=number == 0, max_length=5_000)

    def clean_id(self) -> str:
        """The name of the document: the same in the preview and when it is published."""
        try:
            return uuid.UUID(self.cleaned_data["id"].removeprefix("urn:uuid:")).urn
        except ValueError:
            raise forms.ValidationError(_("This is no name of a document.")) from None

    def document(self) -> str:
        """The document, as N-Triples. A value that is an address is one."""
        said = [(RDF + "type", f"<{self._template['type']}>")]
        for label, predicate in self._template["fields"].items():
            if value := self.cleaned_data[label].strip():
                said.append((predicate, f"<{value}>" if re.match(IRI, value) else literal(value)))
        return triples(self.cleaned_data["id"], said)
