"""Annotation: a served page on which people correct the links that a model proposes.

`journal` keeps every change on the disk; `corpora._annotations` says what the changes add up to. `proposals` has
what a model proposes and `order` which pair comes next. A `session` joins them to what an annotator sees, `app` is
the web application with its page, and `refit` fits a model on what was annotated. Only `app` needs the extra
`serve`.
"""

ORDERS = ("confidence", "file", "random")
