"""The doors of a broker over HTTP (FastAPI): `app` puts them together, `access` says who may use which.

One file a door: `subscriptions`, `publish`, `streams`, and so on. What they do: `triplewire.broker`.
"""
