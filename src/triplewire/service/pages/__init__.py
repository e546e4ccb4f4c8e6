"""The page: what people see of a broker, as HTML made on the server (Jinja2), which works without JavaScript.

`sessions` signs people in; `rendered` makes HTML of `templates` and sends `static`; `shown` has the pages and `posted`
what their forms do; `drawn` draws a query as a graph. `static/page.js` keeps lists up to
date and runs the live tester (`triplewire.service.tester`).
"""
