"""Encoders of a few thousand random weights in a folder, as `transformers` writes it: nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789,.()'"


def tiny_encoder(folder: Path, longest: int = 48) -> str:
    """A BERT of two layers that reads letters; its name is the folder."""
    pytest.importorskip("transformers")
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {piece: k for k, piece in enumerate([*special, *LETTERS, *(f"##{x}" for x in LETTERS)])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=1000))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    with torch.random.fork_rng():
        torch.manual_seed(5)
        network = BertModel(
            BertConfig(
                vocab_size=len(vocabulary),
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=24,
                max_position_embeddings=longest,
                initializer_range=0.3,
            )  # fmt: skip
        )
    network.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest, "pad_token": "[PAD]",
        "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return str(folder)


KINDS = ("Bert", "Electra", "MPNet", "Roberta", "Deberta", "DebertaV2")
_RELATIVE = {
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
_SETTINGS: dict[str, dict[str, Any]] = {
    "Electra": {"embedding_size": 8},
    "MPNet": {"pad_token_id": 1},
    "Roberta": {"pad_token_id": 1},
    "Deberta": _RELATIVE,
    "DebertaV2": {**_RELATIVE, "position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
}


def tiny_encoder_of(kind: str, folder: Path) -> str:
    """An encoder of two layers of a kind of KINDS, with the tokenizer of its kind; its name is the folder."""
    transformers = pytest.importorskip("transformers")
    import torch

    tokenizer, special = _byte_level() if kind in ("Roberta", "Deberta") else _pieces(kind)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        config = getattr(transformers, f"{kind}Config")(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=48,
            initializer_range=0.3,
            **_SETTINGS.get(kind, {}),
        )
        network = getattr(transformers, f"{kind}Model")(config)
    network.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = dict(zip(("pad_token", "cls_token", "sep_token", "unk_token"), special, strict=True))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 48, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return str(folder)


def _byte_level() -> tuple[Any, list[str]]:
    """The tokenizer of RoBERTa and DeBERTa: bytes, of which a space is one."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {piece: k for k, piece in enumerate([*special, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return made, ["<pad>", "<s>", "</s>", "<unk>"]


def _pieces(kind: str) -> tuple[Any, list[str]]:
    """The tokenizers of BERT (pieces of words) and of DeBERTa-v2 and v3 (pieces that may begin with a space)."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    if kind == "DebertaV2":
        scores = [*((piece, 0.0) for piece in special), ("\u2581", -4.0)]
        made = Tokenizer(models.Unigram([*scores, *((p + x, -3.0) for x in LETTERS for p in ("", "\u2581"))], 3))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        vocabulary = {p: k for k, p in enumerate([*special, *LETTERS, *(f"##{x}" for x in LETTERS)])}
        made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made, special
