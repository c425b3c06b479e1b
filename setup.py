"""Says what pyproject.toml cannot: conf/ lies beside the package in the checkout and inside it when installed."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["jacana_torch", "jacana_torch.*"]), "jacana_torch.conf"],
    package_dir={"jacana_torch.conf": "conf"},
    package_data={
        "jacana_torch": [
            "py.typed",
            "model/shipped/**/*",
            "view/assets/*",
            "serve/page/*",
            "annotation/page/*",
            "features/families/*.titles",
            "systems/*/*.titles",
            "tasks/*.txt",
            "diff/*.css",
        ],
        "jacana_torch.conf": ["**/*.yaml", "*.yaml"],
    },
    include_package_data=False,
)
