"""Local causal models: tiny ones of several architectures, run for real against plain forwards."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from shared_core.generation.hugging_face import HuggingFaceModel
from tests.core.attention.models import GPT2, made, trained_bytes

TEXTS = [
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "A pooling layer shrinks a feature map by keeping one value of each window.",
    "user assistant question answer passage document number",
]
PROMPTS = [
    "The capital of France is",
    "A",
    "The answer: a pooling layer shrinks a feature map, and the capital of Italy is",
    "Rome is a",
    "one value of each window",
]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
KINDS = ("llama", "gpt2", "gemma2", "gemma3", "mistral, window")


def trained_tokenizer(*, bos: bool = False, **special: Any) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer trained on `TEXTS`; its prompts begin with <s> if `bos`."""
    tokenizer = trained_bytes(TEXTS, 320)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    tokens = {"bos_token": "<s>", "eos_token": "</s>", **special}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens)


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


@pytest.fixture(scope="module")
def llama() -> Any:
    return made("llama")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer without a padding token, and that pads on the wrong side if it is let."""
    return trained_tokenizer(bos=True, padding_side="right")


@torch.no_grad()
def greedy(model: Any, ids: Sequence[int], steps: int) -> list[int]:
    """Continue token ids one token at a time, each by a whole forward pass without a cache."""
    out = list(ids)
    for _ in range(steps):
        token = int(model(torch.tensor([out]), use_cache=False).logits[0, -1].argmax())
        if token == model.config.eos_token_id:
            break
        out.append(token)
    return out[len(ids) :]


def answer_of(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of generated token ids."""
    return str(tokenizer.decode(ids, skip_special_tokens=True)).strip()


@torch.no_grad()
def scored(model: Any, head: Sequence[int], tail: Sequence[int]) -> list[float]:
    """Log-probabilities of `tail` after `head`, by one plain forward pass of one row."""
    logits = model(torch.tensor([[*head, *tail]]), use_cache=False).logits[0].double()
    table = torch.log_softmax(logits, dim=-1)
    return [float(table[len(head) + at - 1, token]) for at, token in enumerate(tail)]


def test_a_batch_holds_the_answers_that_each_prompt_has_alone(model: Any, tokenizer: Any) -> None:
    """Whatever the architecture, against token by token without batch, padding or cache."""
    expected = [
        answer_of(tokenizer, greedy(model, tokenizer(prompt).input_ids, 12)) for prompt in PROMPTS
    ]
    assert len({*expected}) > 1
    for batch_size in (1, 3):
        ours = HuggingFaceModel(model, tokenizer, max_new_tokens=12, batch_size=batch_size)
        assert ours.generate(PROMPTS) == expected


def test_a_model_whose_weights_are_offloaded_answers_the_same(llama: Any, tokenizer: Any) -> None:
    """By accelerate: its own device is then none that holds anything."""
    accelerate = pytest.importorskip("accelerate")
    offloaded = accelerate.cpu_offload(copy.deepcopy(llama), execution_device="cpu")
    ours, plain = (HuggingFaceModel(model, tokenizer) for model in (offloaded, llama))
    assert ours.generate(PROMPTS) == plain.generate(PROMPTS)
    tails = [" Paris"] * len(PROMPTS)
    assert ours.log_probabilities(PROMPTS, tails) == plain.log_probabilities(PROMPTS, tails)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_continuations_score_as_in_a_plain_forward(
    precision: torch.dtype, model: Any, tokenizer: Any
) -> None:
    """Ragged in batches and one by one; summed in single, or the second digit is off."""
    model = copy.deepcopy(model).to(precision)
    continuations = [" Paris", " window of", " Rome, and the capital", " layer", "."]
    heads = [tokenizer(prompt).input_ids for prompt in PROMPTS]
    tails = [tokenizer(text, add_special_tokens=False).input_ids for text in continuations]
    expected = [scored(model, head, tail) for head, tail in zip(heads, tails, strict=True)]
    assert len({len(tail) for tail in tails}) > 1
    for batch_size in (1, 3) if precision == torch.float32 else (1,):
        ours = HuggingFaceModel(model, tokenizer, batch_size=batch_size)
        found = ours.log_probabilities(PROMPTS, continuations)
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other, abs=1e-5)


def test_a_processor_takes_long_prompts_one_by_one(
    model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the same scores and answers, without padding."""
    ours = HuggingFaceModel(model, tokenizer, max_new_tokens=3)
    tails, widths = [" x"] * len(PROMPTS), list[int]()
    together, answers = ours.log_probabilities(PROMPTS, tails), ours.generate(PROMPTS)
    for name in ("LONG", "LONG_SQUARED"):
        monkeypatch.setattr(f"shared_core.generation.hugging_face.{name}", 2)
    see = model.register_forward_pre_hook(
        lambda _, args, given: widths.append(len(given["input_ids"])), with_kwargs=True
    )
    alone = ours.log_probabilities(PROMPTS, tails)
    assert ours.generate(PROMPTS) == answers
    see.remove()
    assert {*widths} == {1}
    assert len(widths) > len(PROMPTS)
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_the_tokenizers_end_token_ends_an_answer_of_a_model_that_has_none(tokenizer: Any) -> None:
    """Some checkpoints leave it out; every answer would run to its limit."""
    model = made("llama")
    row = greedy(model, tokenizer(PROMPTS[0]).input_ids, 12)
    model.generation_config.eos_token_id = None
    ending = copy.deepcopy(tokenizer)
    ending.eos_token = ending.convert_ids_to_tokens(row[4])
    answer = HuggingFaceModel(model, ending, max_new_tokens=12).generate([PROMPTS[0]])
    assert answer == [answer_of(tokenizer, row[: row.index(row[4])])]


def test_special_tokens_and_outer_space_are_no_part_of_an_answer(tokenizer: Any) -> None:
    """A grader would have to know of them."""
    model = made("llama")
    row = greedy(model, tokenizer(PROMPTS[0]).input_ids, 12)
    marking = copy.deepcopy(tokenizer)
    marking.add_special_tokens({"cls_token": marking.convert_ids_to_tokens(row[4])})
    expected = answer_of(tokenizer, [token for token in row if token != row[4]])
    ours = HuggingFaceModel(model, marking, max_new_tokens=12)
    assert ours.generate([PROMPTS[0]]) == [expected]
    model.lm_head.weight.data.zero_()  # every token is as likely: the first one, which is padding
    assert ours.generate([PROMPTS[0]]) == [""]


SETTINGS: list[dict[str, Any]] = [
    {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "repetition_penalty": 1.3},
    {"num_beams": 4, "num_return_sequences": 2, "min_new_tokens": 6},
    {"max_length": 20},
    {"stop_strings": ["a"]},
    {"forced_eos_token_id": 2, "suppress_tokens": list(range(50, 200))},
    {"cache_implementation": "static", "return_dict_in_generate": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_an_answer_owes_nothing_to_what_a_checkpoint_recommends(
    settings: dict[str, Any], llama: Any, tokenizer: Any
) -> None:
    """And the settings stay."""
    inclined = made("llama")
    inclined.generation_config.update(**settings)
    before = copy.deepcopy(inclined.generation_config.to_dict())
    plain = HuggingFaceModel(llama, tokenizer, max_new_tokens=8)
    ours = HuggingFaceModel(inclined, tokenizer, max_new_tokens=8)
    assert ours.generate(PROMPTS) == plain.generate(PROMPTS)
    assert inclined.generation_config.to_dict() == before


def test_model_and_tokenizer_are_left_as_they_were(tokenizer: Any) -> None:
    """A training run may go on with them."""
    config = GPT2Config(**GPT2, vocab_size=320, eos_token_id=2, attn_pdrop=0.5, resid_pdrop=0.5)
    model = AutoModelForCausalLM.from_config(config).train()
    model.transformer.ln_f.eval()
    modes = [part.training for part in model.modules()]
    settings = copy.deepcopy(model.generation_config.to_dict())
    ours = HuggingFaceModel(model, tokenizer, max_new_tokens=2)
    ours.generate(PROMPTS)
    one, same = (ours.log_probabilities(["Rome"], [" is"]) for _ in range(2))
    assert one == same, "dropout is off"
    assert [part.training for part in model.modules()] == modes
    assert model.generation_config.to_dict() == settings
    assert (tokenizer.padding_side, tokenizer.pad_token) == ("right", None)


def test_a_chat_model_is_sent_a_user_message_with_special_tokens_once(llama: Any) -> None:
    """The template writes them, and the tokenizer must not add its own."""
    tokenizer = trained_tokenizer(bos=True, chat_template=TEMPLATE)
    ours = HuggingFaceModel(llama, tokenizer, max_new_tokens=12)
    rendered = "<s><|user|>Where is Rome?<|assistant|>"
    ids = tokenizer(rendered, add_special_tokens=False).input_ids
    assert ids.count(1) == 1
    expected = answer_of(tokenizer, greedy(llama, ids, 12))
    assert ours.generate(["Where is Rome?"]) == [expected]
    assert ours.count_tokens("Where is Rome?") == len(ids)
    tail = tokenizer("Italy", add_special_tokens=False).input_ids
    (scores,) = ours.log_probabilities(["Where is Rome?"], ["Italy"])
    assert scores == pytest.approx(scored(llama, ids, tail), abs=1e-5)


def test_options_of_a_template_are_passed_on(llama: Any) -> None:
    """Such as to leave out the thinking; one that it refuses is an error in its own words."""
    thinking = (
        "{% if effort == 'much' %}{{ raise_exception('effort is low or high') }}{% endif %}"
        "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    )
    tokenizer = trained_tokenizer(bos=True, chat_template=TEMPLATE + thinking)
    rendered = "<s><|user|>Where is Rome?<|assistant|>"
    options = {"enable_thinking": False}
    for chat, ending in (("auto", ""), (True, ""), ({}, ""), (options, "<think></think>")):
        ours = HuggingFaceModel(llama, tokenizer, chat=chat)
        assert ours.encoder.render("Where is Rome?") == rendered + ending
    with pytest.raises(ValueError, match=r"does not show .*\(effort is low or high\);"):
        HuggingFaceModel(llama, tokenizer, chat={"effort": "much"})


PARTS = (
    "{% for message in messages %}<|{{ message.role }}|>{% for part in message.content "
    "if part['type'] == 'text' %}{{ part['text'] }}{% endfor %}{% endfor %}<|assistant|>"
)


@pytest.mark.parametrize(
    ("template", "chat"),
    [
        ("{{ raise_exception('no') }}", True),
        (PARTS, "auto"),  # of a text it would show nothing, and all questions be the same
        (None, True),
        (TEMPLATE, {"tokenize": True}),
    ],
)
def test_a_chat_that_cannot_be_is_refused_at_once(
    template: str | None, chat: Any, llama: Any
) -> None:
    """Not at the first question; without it the model can be asked all the same."""
    tokenizer = trained_tokenizer(bos=True, chat_template=template)
    with pytest.raises(ValueError, match=r"does not show the message of a user.*chat=False"):
        HuggingFaceModel(llama, tokenizer, chat=chat)
    bare = HuggingFaceModel(llama, tokenizer, chat=False)
    assert bare.count_tokens("Where") == 1 + len(tokenizer.tokenize("Where"))


def test_a_continuation_never_changes_the_tokens_of_its_prompt(llama: Any) -> None:
    """ "the" + "re": where the tokenizer would merge across the seam, it is asked for each part."""
    tokenizer = trained_tokenizer()
    head = tokenizer("The cap").input_ids
    whole = tokenizer("The capital").input_ids
    assert whole[: len(head)] != head
    tail = tokenizer("ital").input_ids
    (scores,) = HuggingFaceModel(llama, tokenizer).log_probabilities(["The cap"], ["ital"])
    assert scores == pytest.approx(scored(llama, head, tail), abs=1e-5)


def test_a_continuation_is_cut_as_it_stands_behind_its_prompt(llama: Any) -> None:
    """Tokenizers like Llama 2's put a space before every text, also before one in the middle."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=120, special_tokens=["<pad>", "<s>", "</s>"], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    spacing = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    head = spacing("The capital is").input_ids
    whole = spacing("The capital is, and").input_ids
    assert whole != head + spacing(", and").input_ids
    assert whole[: len(head)] == head
    (scores,) = HuggingFaceModel(llama, spacing).log_probabilities(["The capital is"], [", and"])
    assert scores == pytest.approx(scored(llama, head, whole[len(head) :]), abs=1e-5)


def test_what_has_no_tokens_is_refused(llama: Any) -> None:
    """Nothing can be said of it, and a row of padding would give some number."""
    ours = HuggingFaceModel(llama, trained_tokenizer(), name="tiny")
    with pytest.raises(ValueError, match="continuation 1 is '', which has no tokens to score"):
        ours.log_probabilities(["a", "b"], ["a", ""])
    with pytest.raises(ValueError, match="prompt 1 is empty: nothing for tiny to go on from"):
        ours.generate(["a", ""])


def test_a_prompt_that_does_not_fit_is_refused_and_not_cut(llama: Any) -> None:
    """Its passages would be missing from one end: the very effect that is to be measured.

    The limit is the model's; what the tokenizer holds to be one is often wrong.
    """
    tokenizer = trained_tokenizer(bos=True, model_max_length=50)
    ours = HuggingFaceModel(llama, tokenizer, name="tiny", max_new_tokens=28)
    fits, too_long = "." * 99, "." * 100
    assert (ours.count_tokens(fits), ours.count_tokens(too_long)) == (100, 101)
    assert len(ours.generate([fits])) == 1
    expected = (
        "prompt 1 has 101 tokens, which with the 28 behind it are more than the 128 that tiny"
    )
    with pytest.raises(ValueError, match=expected):
        ours.generate(["short", too_long])
    assert len(ours.log_probabilities([fits], [" x" * 14])[0]) == 28
    with pytest.raises(ValueError, match=r"prompt 0 has 101 tokens.* the 28 behind"):
        ours.log_probabilities([too_long], [" x" * 14])


def test_an_encoder_decoder_is_refused(tokenizer: Any) -> None:
    """Its output does not begin with the prompt."""
    config = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=320)
    with pytest.raises(ValueError, match="T5ForConditionalGeneration is an encoder-decoder"):
        HuggingFaceModel(T5ForConditionalGeneration(config), tokenizer)


def test_only_the_needed_logits_are_computed(llama: Any, tokenizer: Any) -> None:
    """A long prompt times a large vocabulary would fill the memory of most devices."""
    rows: list[int] = []
    handle = llama.lm_head.register_forward_hook(
        lambda module, inputs, output: rows.append(output.shape[1])
    )
    try:
        HuggingFaceModel(llama, tokenizer).log_probabilities(["Rome is " * 20], [" one"])
    finally:
        handle.remove()
    assert rows == [1 + len(tokenizer(" one", add_special_tokens=False).input_ids)]
