"""The vocabulary of the site as the service's taxonomy: sections, tags, categories and page types are classes, pages
are instances. It is told by deltas: `VocabularyMap.exported` is what the service has of each term."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext as _
from wagtail.admin.forms import WagtailAdminModelForm
from wagtail.models import Page

from wagtail_triplewire.conf import conf
from wagtail_triplewire.models import VocabularyMap
from wagtail_triplewire.names import page_iri, term_iri
from wagtail_triplewire.outbox import may_leave
from wagtail_triplewire.rdf import RDF, RDFS, classes_of, literal, triples
from wagtail_triplewire.service import Service

OWL_EQUIVALENT = "http://www.w3.org/2002/07/owl#equivalentClass"


def refresh_pages(service: Service, pages: Iterable[int]) -> None:
    """Tell the service what has changed of pages, the sections above them, and their tags. Raises `ServiceError`."""
    now: dict[str, tuple[str, list[str]]] = {}
    for number in pages:
        page = Page.objects.filter(pk=number).first()
        if page is None or not may_leave(page):
            now |= {f"page-{number}": ("", []), f"section-{number}": ("", [])}
            continue
        now |= _page_terms(page.specific)
    _tell(service, now)


def refresh_categories(service: Service) -> None:
    """The same of all categories. Raises `ServiceError`, and `ValidationError` for a cycle, which names its path."""
    now: dict[str, tuple[str, list[str]]] = {}
    parents: dict[str, list[str]] = {}
    labels: dict[str, str] = {}
    for category in apps.get_model(conf().categories).objects.all():
        term = f"category-{category.pk}"
        labels[term] = str(category)
        parents[term] = [f"category-{parent.pk}" for parent in category.parents.all()]
        now[term] = str(category), parents[term]
    _check_no_cycle(parents, labels)
    known = VocabularyMap.objects.filter(term__startswith="category-").values_list("term", flat=True)
    _tell(service, {**{term: ("", []) for term in known}, **now})


def forget() -> None:
    """At another address of the site all names are new: what the service has of the old ones is not the site's any
    more. Classes that people have declared equal stay so."""
    VocabularyMap.objects.filter(equivalent="").delete()
    VocabularyMap.objects.update(exported="")


def all_statements() -> str:
    """The whole export, as N-Triples (which are Turtle)."""
    return "".join(VocabularyMap.objects.values_list("exported", flat=True))


class CategoryForm(WagtailAdminModelForm):
    """For a model of categories with `parents`: a cycle is refused, with its path."""

    def clean(self) -> dict[str, object]:
        """Raises `ValidationError`."""
        cleaned: dict[str, object] = super().clean()
        check_category(self.instance, cleaned.get("parents") or ())
        return cleaned


def check_category(category: Model, parents: Iterable[Model]) -> None:
    """Raises `ValidationError` where a category would be above itself. It names the path."""
    others = {str(each.pk): each for each in type(category)._default_manager.exclude(pk=category.pk)}
    above = {number: [str(parent.pk) for parent in each.parents.all()] for number, each in others.items()}
    above[str(category.pk)] = [str(parent.pk) for parent in parents]
    _check_no_cycle(above, {**{number: str(each) for number, each in others.items()}, str(category.pk): str(category)})


def _check_no_cycle(parents: Mapping[str, Iterable[str]], labels: Mapping[str, str]) -> None:
    try:
        graphlib.TopologicalSorter(parents).prepare()
    except graphlib.CycleError as error:
        path = " -> ".join(labels[term] for term in reversed(error.args[1]))
        raise ValidationError(_("A category would be above itself: %s") % path) from None


def _page_terms(page: Page) -> dict[str, tuple[str, list[str]]]:
    """What is to be said of the terms of a page: label, and the terms above each."""
    classes = classes_of(page)
    terms = {term: (label, []) for term, label in classes.items() if term.startswith("tag-") or "." in term}
    terms[f"page-{page.pk}"] = page.title, list(classes)
    for section in [*page.get_ancestors().filter(depth__gt=1), page]:
        if section.numchild and may_leave(section):
            above = section.get_parent()
            terms[f"section-{section.pk}"] = section.title, [] if above.is_root() else [f"section-{above.pk}"]
    return terms


def _statements(term: str, label: str, above: list[str], equivalent: str) -> str:
    if not label:
        return ""
    if term.startswith("page-"):
        return triples(page_iri(int(term.removeprefix("page-"))), [(RDF + "type", f"<{term_iri(t)}>") for t in above])
    said = [(RDF + "type", f"<{RDFS}Class>"), (RDFS + "label", literal(label))]
    said += [(RDFS + "subClassOf", f"<{term_iri(each)}>") for each in above]
    said += [(OWL_EQUIVALENT, f"<{equivalent}>")] if equivalent else []
    return triples(term_iri(term), said)


def _tell(service: Service, now: Mapping[str, tuple[str, list[str]]]) -> None:
    """Send what is said otherwise than before, and keep it, once the service has taken it."""
    rows = {row.term: row for row in VocabularyMap.objects.filter(term__in=now)}
    removed, added, changed = [], [], []
    for term, (label, above) in now.items():
        row = rows.get(term) or VocabularyMap(term=term)
        said = _statements(term, label, above, row.equivalent)
        if said != row.exported:
            removed.append(row.exported)
            added.append(said)
            row.label, row.exported = label[:255], said
            changed.append(row)
    if not changed:
        return
    service.change_taxonomy({"remove": "".join(removed), "add": "".join(added)})
    with transaction.atomic():
        for row in changed:
            if row.exported or row.equivalent:
                row.save()
            elif row.pk:
                row.delete()
