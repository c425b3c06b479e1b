"""The documentation site: sphinx-build -W -b html docs docs/_build"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # generated.py

from jacana_torch.version import __version__

project = "jacana_torch"
author = "The jacana_torch maintainers"
copyright = "2026, the jacana_torch maintainers. Apache 2.0"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton", "generated"]
exclude_patterns = ["_build", "jupyter_execute"]  # the latter: what the notebooks returned in the last build
nitpicky = False  # docstrings name types of NumPy and torch, whose inventories need a network

nb_execution_mode = "force"  # a notebook is committed without outputs, and executed in every build
nb_execution_raise_on_error = True
nb_execution_timeout = 300

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the contributors' pages begin where GitHub's do

smartquotes = False  # they change what is typed
default_role = "code"  # docstrings mark code as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_type_aliases = {"Pair": "Pair"}
autodoc_mock_imports = ["spacy"]  # an extra
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"jacana_torch {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
highlight_language = "none"

linkcheck_ignore = [r"http://127\.0\.0\.1.*", r"http://align\.example\.org.*"]
linkcheck_timeout = 20
linkcheck_retries = 2
