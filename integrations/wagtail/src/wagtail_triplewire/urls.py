"""The addresses of the app: `path("triplewire/", include("wagtail_triplewire.urls"))`, before Wagtail's own."""

from __future__ import annotations

from django.urls import path

from wagtail_triplewire import public_views, views

app_name = "triplewire"
urlpatterns = [
    path("", public_views.index, name="index"),
    path("pages.rdf", public_views.pages_feed, name="feed"),
    path("taxonomy.ttl", public_views.taxonomy_export, name="taxonomy"),
    path("terms", public_views.taxonomy_export),
    path("pages/<int:number>", public_views.page, name="page"),
    path("notify", public_views.notify, name="notify"),
    path("profile/", views.profile, name="profile"),
    path("requests/new/", views.edit, name="new"),
    path("requests/<int:number>/", views.edit, name="request"),
    path("requests/<int:number>/delete/", views.delete, name="delete"),
    path("requests/<int:number>/renew/", views.renew, name="renew"),
    path("follow/<str:kind>/<int:number>/", views.follow, name="follow"),
    path("entries/<int:number>/", views.entry, name="entry"),
    path("entries/read/", views.read_all, name="read_all"),
    path("documents/", views.document, name="documents"),
    path("documents/<str:name>/", views.document, name="document"),
]
