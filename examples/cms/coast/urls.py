"""The addresses of the site. The app's come before the pages of Wagtail."""

from __future__ import annotations

from django.contrib.auth import views
from django.urls import include, path
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as wagtailadmin_urls

urlpatterns = [
    path("admin/", include(wagtailadmin_urls)),
    path("triplewire/", include("wagtail_triplewire.urls")),
    path("sign-in/", views.LoginView.as_view(), name="login"),
    path("sign-out/", views.LogoutView.as_view(), name="logout"),
    path("", include(wagtail_urls)),
]
