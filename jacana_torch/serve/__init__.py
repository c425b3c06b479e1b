"""Serving: models in, a small web server out, with a page for people and JSON for programs.

`requests` says what may be asked, `batching` gathers what is asked at the same time, `work` has it answered,
`app` is the web application and `server` runs it. Starlette and uvicorn are needed by those last two alone.
"""

from __future__ import annotations
