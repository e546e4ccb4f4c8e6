"""The page: what people see of a broker, as HTML made on the server (Jinja2), which works without JavaScript.

`sessions` signs people in; `rendered` makes HTML of `templates` and sends `static`; `shown` has the pages and `posted`
what their forms do; `looked_up` asks the store; `drawn` draws a query as a graph. Scripts: htmx keeps what changes up
to date, `static/page.js` runs the live tester (`triplewire.service.tester`).
"""
