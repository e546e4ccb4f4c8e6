"""The pages of the site: sections with articles, blog posts and pages of a wiki, and threads with replies.

Nothing here knows Triplewire, but for two names: `reply_to` of a reply, and `base_form_class` of categories.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import escape
from modelcluster.contrib.taggit import ClusterTaggableManager
from modelcluster.fields import ParentalKey, ParentalManyToManyField
from modelcluster.models import ClusterableModel
from taggit.models import TaggedItemBase
from wagtail.admin.panels import FieldPanel
from wagtail.fields import RichTextField
from wagtail.models import Page
from wagtail.search import index
from wagtail.snippets.models import register_snippet

from wagtail_triplewire.taxonomy import CategoryForm


@register_snippet
class Category(ClusterableModel):
    """What a page is about. A category may lie below several others."""

    name = models.CharField(max_length=100, unique=True)
    parents = ParentalManyToManyField("self", symmetrical=False, blank=True, related_name="children")

    panels = (FieldPanel("name"), FieldPanel("parents", widget=forms.CheckboxSelectMultiple))
    base_form_class = CategoryForm

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "categories"

    def __str__(self) -> str:
        return self.name


class Written(Page):
    """What all pages of the site have: a text."""

    body = RichTextField(blank=True)
    content_panels = (*Page.content_panels, FieldPanel("body"))
    search_fields = (*Page.search_fields, index.SearchField("body"))

    class Meta:
        abstract = True


class Section(Written):
    """A page with others below it."""

    template = "pages/page.html"


class Article(Written):
    """A page that stays."""

    template = "pages/page.html"

    categories = ParentalManyToManyField(Category, blank=True)
    content_panels = (*Written.content_panels, FieldPanel("categories", widget=forms.CheckboxSelectMultiple))


class WikiPage(Written):
    """A page that many people change."""

    template = "pages/page.html"


class BlogTag(TaggedItemBase):
    """A tag of a blog post."""

    content_object = ParentalKey("BlogPost", on_delete=models.CASCADE, related_name="tagged_items")


class BlogPost(Written):
    """News, with tags and categories."""

    template = "pages/page.html"

    tags = ClusterTaggableManager(through=BlogTag, blank=True)
    categories = ParentalManyToManyField(Category, blank=True)
    content_panels = (
        *Written.content_panels,
        FieldPanel("tags"),
        FieldPanel("categories", widget=forms.CheckboxSelectMultiple),
    )


class Answered(Written):
    """A page that people who are signed in answer from the site itself."""

    subpage_types = ("pages.Reply",)

    class Meta:
        abstract = True

    def serve(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse | TemplateResponse:
        """The page; a form that is posted is a reply."""
        text = request.POST.get("text", "").strip()[:5_000]
        if request.method == "POST" and request.user.is_authenticated and text:
            self.answer(request.user, text)
            return HttpResponseRedirect(self.url)
        return super().serve(request, *args, **kwargs)

    def answer(self, user: Any, text: str) -> Reply:
        """Publish a reply below this page."""
        count = self.get_children().count() + 1
        reply = Reply(title=f"Re: {self.title}"[:255], slug=f"reply-{count}", owner=user, live=False)
        reply.body = "".join(f"<p>{part}</p>" for part in escape(text).splitlines())
        self.add_child(instance=reply)
        reply.save_revision(user=user).publish()
        return reply


class Thread(Answered):
    """What a discussion begins with."""

    template = "pages/page.html"


class Reply(Answered):
    """An answer to a thread, or to another reply."""

    template = "pages/page.html"

    parent_page_types = ("pages.Thread", "pages.Reply")

    @property
    def reply_to(self) -> Page:
        """The page that it answers."""
        return self.get_parent()
