"""The present names of classes that have moved since version 0.1.0, so that older saved models still load."""

from __future__ import annotations

# fmt: off
RENAMED = {
    "jacana_torch.aligners.bag_of_words.BagOfWords": "jacana_torch.systems.bag_of_words.BagOfWords",
    "jacana_torch.aligners.manli.aligner.Manli": "jacana_torch.systems.manli.manli.Manli",
    "jacana_torch.aligners.manli.exact.ManliExact": "jacana_torch.systems.manli.manli.ManliExact",
    "jacana_torch.aligners.neural.aligner.Neural": "jacana_torch.aligners.neural.neural.Neural",
    "jacana_torch.aligners.phrase.aligner.PhraseCrf": "jacana_torch.systems.phrase.phrase_crf.PhraseCrf",
    "jacana_torch.aligners.stanford.aligner.Stanford": "jacana_torch.systems.stanford.stanford.Stanford",
    "jacana_torch.aligners.sultan.aligner.Sultan": "jacana_torch.systems.sultan.sultan.Sultan",
    "jacana_torch.aligners.sultan.aligner.TunedSultan": "jacana_torch.systems.sultan.sultan.TunedSultan",
    "jacana_torch.aligners.sultan.family.SultanLinks": "jacana_torch.systems.sultan.sultan.SultanLinks",
    "jacana_torch.aligners.ted.aligner.Ted": "jacana_torch.systems.ted.ted.Ted",
    "jacana_torch.aligners.unsupervised.agreement.Agreement":
        "jacana_torch.systems.unsupervised.unsupervised.Agreement",
    "jacana_torch.aligners.unsupervised.hmm.Hmm": "jacana_torch.systems.unsupervised.unsupervised.Hmm",
    "jacana_torch.aligners.unsupervised.ibm1.Ibm1": "jacana_torch.systems.unsupervised.unsupervised.Ibm1",
    "jacana_torch.aligners.unsupervised.thot.Thot": "jacana_torch.systems.unsupervised.thot.Thot",
    "jacana_torch.annotate.base.NoAnnotator": "jacana_torch.annotate.NoAnnotator",
    "jacana_torch.features.attachment.Attachment": "jacana_torch.features.families.attachment.Attachment",
    "jacana_torch.features.context.Context": "jacana_torch.features.families.context.Context",
    "jacana_torch.features.contextual.Contextual": "jacana_torch.features.families.contextual.Contextual",
    "jacana_torch.features.dependency.Dependency": "jacana_torch.features.families.dependency.Dependency",
    "jacana_torch.features.distortion.Distortion": "jacana_torch.features.families.distortion.Distortion",
    "jacana_torch.features.distsim.DistSim": "jacana_torch.features.families.distsim.DistSim",
    "jacana_torch.features.kinds.Kinds": "jacana_torch.features.families.kinds.Kinds",
    "jacana_torch.features.ner.Ner": "jacana_torch.features.families.ner.Ner",
    "jacana_torch.features.pos.Pos": "jacana_torch.features.families.pos.Pos",
    "jacana_torch.features.position.Position": "jacana_torch.features.families.position.Position",
    "jacana_torch.features.ppdb.Ppdb": "jacana_torch.features.families.ppdb.Ppdb",
    "jacana_torch.features.string.String": "jacana_torch.features.families.string.String",
    "jacana_torch.features.wordnet.WordNet": "jacana_torch.features.families.wordnet.WordNet",
    "jacana_torch.model.Model": "jacana_torch.model.model.Model",
}
# fmt: on
