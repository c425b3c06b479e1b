"""A metric for Hugging Face's `evaluate`: how much of the references the predictions express.

metric = evaluate.load("examples/jacana_coverage")
metric.compute(references=[...], predictions=[...], model="standard")
"""

import datasets
import evaluate

import jacana_torch as jt

DESCRIPTION = (
    "The weighted share of the reference's content words that are aligned with the prediction (jacana_torch)."
)


class JacanaCoverage(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description="references and predictions: strings; model: a model of jacana_torch",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions, references, model="core"):
        found = jt.corpus_coverage(list(zip(references, predictions, strict=True)), model)
        return found.to_dict()
