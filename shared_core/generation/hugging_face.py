"""Causal language models of Hugging Face transformers, run on this machine."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from shared_core._extras import require
from shared_core.checking import check_count
from shared_core.generation.fingerprint import fingerprint_of
from shared_core.generation.loading import (
    context_length,
    is_gguf,
    load_causal_model,
    name_of,
    unwrapped,
)
from shared_core.generation.tokens import Chat, PromptEncoder, batches, left_padded
from shared_core.generation.weights import hash_of_weights, reading_of, settings_of

if TYPE_CHECKING:
    from torch import Tensor

LAST_TOKEN = slice(-1, None)
"""Whose logits to compute where attention is read: as `logits_to_keep`.

For the number 1, Gemma 4 leaves the other tokens out of the layers that share their keys, too.
"""

LONG = 512
"""Tokens from which a processor scores a prompt by itself.

Beside padding it would compute the masked half of the attention, too.
"""

LONG_SQUARED = 50_000
"""The same for a prompt that is answered: its tokens, squared, for each of the answer.

The tokens of answers are generated faster together.
"""


class HuggingFaceModel:
    """A causal language model that decodes greedily and scores given answers.

    The model, its generation settings and the tokenizer are not modified. Of the generation
    settings only the end tokens are used; what else a checkpoint recommends (sampling, penalties,
    lengths, a kind of cache) is ignored.

    Parameters
    ----------
    model
        A loaded ``PreTrainedModel`` with a language-model head. What is wrapped around it, as by
        ``torch.compile`` or PEFT, is removed (`unwrapped`).
    tokenizer
        Its tokenizer. Without a padding token the end-of-text token pads.
    name
        Name of the model; by default that of its folder, or its hub name.
    max_new_tokens
        Most tokens of an answer, >= 1.
    batch_size
        Prompts in one forward pass, >= 1; a processor takes long ones one by one.
    chat
        Render each prompt as one user message in the tokenizer's chat template; ``"auto"`` does
        where there is a template, and a mapping does with options of the template, such as
        ``{"enable_thinking": False}``.

    Raises
    ------
    ValueError
        If a number is out of range, `chat` needs a template that the tokenizer does not have or
        that does not show the message, or the model is an encoder-decoder or not one
        of transformers.
    """

    concurrency = 1

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        max_new_tokens: int = 64,
        batch_size: int = 8,
        chat: Chat = "auto",
    ) -> None:
        self.max_new_tokens = check_count(max_new_tokens, "max_new_tokens")
        self.batch_size = check_count(batch_size, "batch_size")
        self.model = unwrapped(model)
        if self.model.config.is_encoder_decoder:
            kind = type(self.model).__name__
            raise ValueError(f"{kind} is an encoder-decoder; give a causal model")
        self.tokenizer = tokenizer
        self.name = name if name is not None else name_of(self.model)
        self.encoder = PromptEncoder.of(tokenizer, chat)
        self._own_name = self.name  # whatever it is called later

    @property
    def fingerprint(self) -> str:
        """What distinguishes this model's answers from those of another of the same name.

        Weights, settings of the layers, tokenizer, chat template with its options, end tokens and
        length. A model that was trained further under the same name is another one. All weights
        are read each time: about a second for each gigabyte.
        """
        template = self.tokenizer.chat_template if self.encoder.chat else ""
        if self.encoder.options:
            template = f"{template} {sorted(self.encoder.options.items())}"
        return fingerprint_of(
            self._own_name,
            f"{self.max_new_tokens} {sorted(self.end_tokens())} {template}",
            reading_of(self.tokenizer),
            settings_of(self.model.config),
            hash_of_weights(self.model, self._own_name),
        )

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        gguf_file: str | None = None,
        device: str | None = None,
        max_new_tokens: int = 64,
        batch_size: int = 8,
        chat: Chat = "auto",
    ) -> Self:
        """Load a model in the precision it was saved in, and its tokenizer.

        Parameters
        ----------
        name
            Folder, or hub name; with ``HF_HUB_OFFLINE=1`` only what has been downloaded.
        gguf_file
            A GGUF file there, the form of llama.cpp. Its weights are dequantized: to float32, so
            that 135 million of them take 540 MB. The same as ``name/gguf_file`` for a name.
        device
            ``"cuda"``, ``"cuda:1"``, ``"mps"`` or ``"cpu"``; by default the first there is.
        max_new_tokens, batch_size, chat
            As of the class.

        Raises
        ------
        GenerationError
            If there is no such model, or it cannot be loaded.
        MissingExtraError
            If torch or transformers is not installed, or what it reads GGUF files with.
        """
        if gguf_file is not None:
            name = f"{name}/{gguf_file}"
        model, tokenizer = load_causal_model(name, device=device)
        return cls(
            model,
            tokenizer,
            name=Path(name).stem if is_gguf(name) else None,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            chat=chat,
        )

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return one greedy answer a prompt, in order, stripped and without special tokens.

        Raises
        ------
        ValueError
            If a prompt has no tokens, or more than the context leaves room for next to the answer.
        """
        rows = self._rows(prompts)
        answers, long = [""] * len(rows), math.isqrt(LONG_SQUARED * self.max_new_tokens)
        with evaluating(self.model):
            for batch in self._batches([len(row) for row in rows], long):
                found = self.continued([rows[index] for index in batch], self.max_new_tokens)
                for index, ids in zip(batch, found.answers, strict=True):
                    answers[index] = self.text_of(ids)
        return answers

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[list[float]]:
        """Return the natural log-probability, <= 0, of each token of each continuation.

        Each is given the prompt and the tokens before it. The continuation follows the prompt as
        it stands (the space between them is the caller's to write), or the rendered chat message;
        `PromptEncoder.encode_pairs` says how the seam is cut into tokens.

        Raises
        ------
        ValueError
            If the two differ in number, a prompt or continuation has no tokens, or the two
            together have more than the context holds.
        """
        pairs = self._pairs(prompts, continuations)
        rows = [head + tail for head, tail in pairs]
        scores: list[list[float]] = [[] for _ in rows]
        with evaluating(self.model):
            for batch in self._batches([len(row) for row in rows], LONG):
                keep = 1 + max(len(pairs[index][1]) for index in batch)
                logits = self._last_logits([rows[index] for index in batch], keep)
                for index, row in zip(batch, logits, strict=True):
                    scores[index] = _log_probabilities(row, pairs[index][1])
        return scores

    def check_prompts(
        self, prompts: Sequence[str], continuations: Sequence[str] | None = None
    ) -> None:
        """Raise ValueError where `generate`, or `log_probabilities`, would; nothing is asked."""
        if continuations is None:
            self._rows(prompts)
        else:
            self._pairs(prompts, continuations)

    def _batches(self, lengths: Sequence[int], long: int) -> list[list[int]]:
        """Return indices in batches, the longest first; on a processor `long` ones alone."""
        several = batches(lengths, self.batch_size)
        if self.model.device.type != "cpu":
            return several
        alone = [[at] for batch in several for at in batch if lengths[at] >= long]
        others = ([at for at in batch if lengths[at] < long] for batch in several)
        return [*alone, *filter(None, others)]

    def _rows(self, prompts: Sequence[str]) -> list[list[int]]:
        rows = self.encoder.encode(prompts)
        self.check_room(rows, room=[self.max_new_tokens] * len(rows))
        return rows

    def _pairs(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[tuple[list[int], list[int]]]:
        pairs = self.encoder.encode_pairs(prompts, continuations)
        self.check_room([head for head, _ in pairs], room=[len(tail) for _, tail in pairs])
        return pairs

    def count_tokens(self, text: str) -> int:
        """Tokens that the model reads when `text` is its prompt, template and special ones too."""
        return len(self.encoder.encode([text])[0])

    @property
    def window(self) -> int | None:
        """Longest prompt and answer in tokens, if the model's configuration says so."""
        return context_length(self.model.config)

    def check_room(self, heads: Sequence[Sequence[int]], *, room: Sequence[int]) -> None:
        """Raise ValueError if a prompt is empty, or leaves less than `room` in the context."""
        limit = self.window
        for index, (head, behind) in enumerate(zip(heads, room, strict=True)):
            if not head:
                raise ValueError(f"prompt {index} is empty: nothing for {self.name} to go on from")
            if limit is not None and len(head) + behind > limit:
                raise ValueError(
                    f"prompt {index} has {len(head)} tokens, which with the {behind} behind it are "
                    f"more than the {limit} that {self.name} reads; give fewer or shorter passages"
                )

    def continued(
        self, rows: Sequence[Sequence[int]], max_new_tokens: int, *, keep_cache: bool = False
    ) -> Continued:
        """Continue rows of token ids greedily, in one batch; to be called while `evaluating`.

        Parameters
        ----------
        rows
            Prompts.
        max_new_tokens
            Most tokens of an answer.
        keep_cache
            Return the cache, too, which has room for more, and have every layer see all tokens.
        """
        package: Any = require("transformers", extra="models")
        ends = self.end_tokens()
        inputs = self._padded(rows)
        settings = package.GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_new_tokens,
            eos_token_id=ends or None,
            pad_token_id=self._padding(),
            # with a cache that is read, and in every other batch would still be there in the next
            return_dict_in_generate=keep_cache,
        )
        # `generate` takes what is not said from the model's own settings: here it has none
        plain = copy.copy(self.model)
        plain.generation_config = package.GenerationConfig()
        options = {}
        if keep_cache and "logits_to_keep" in inspect.signature(plain.forward).parameters:
            options["logits_to_keep"] = LAST_TOKEN
        output = plain.generate(**inputs, **options, generation_config=settings)
        mask = inputs["attention_mask"]
        sequences = output.sequences if keep_cache else output
        new = sequences[:, mask.shape[1] :].tolist()
        return Continued([ids[: _end(ids, ends) + 1] for ids in new], mask, output)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return generated tokens up to the first end token as text, without special tokens."""
        answer = list(ids[: _end(ids, self.end_tokens())])
        return str(self.tokenizer.decode(answer, skip_special_tokens=True)).strip()

    def _last_logits(self, rows: Sequence[Sequence[int]], keep: int) -> Tensor:
        inputs = self._padded(rows)
        options = {
            "position_ids": (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0),
            "logits_to_keep": keep,
            "use_cache": False,
        }
        known = inspect.signature(self.model.forward).parameters
        options = {key: value for key, value in options.items() if key in known}
        return self.model(**inputs, **options).logits[:, -keep:]

    def _padded(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        device = self.model.device
        if device.type == "meta":  # accelerate offloads the weights, and knows where they are used
            device = self.model.get_input_embeddings()._hf_hook.execution_device
        return left_padded(rows, pad=self._padding(), device=device)

    def end_tokens(self) -> list[int]:
        """Return the tokens that end an answer: the model's own and the tokenizer's."""
        own = self.model.generation_config.eos_token_id
        ends = [own] if isinstance(own, int) else list(own or [])
        eos = self.tokenizer.eos_token_id
        return ends if eos is None or eos in ends else [*ends, eos]

    def _padding(self) -> int:
        pad = self.tokenizer.pad_token_id
        ends = self.end_tokens() or [0]
        return ends[-1] if pad is None else int(pad)  # masked, so any token will do


@dataclass(frozen=True)
class Continued:
    """What a model added to a batch of prompts.

    Attributes
    ----------
    answers
        Token ids of each answer, with the end token if there was one.
    mask
        True for the tokens of a prompt, False for padding, shape (batch, width).
    output
        What ``generate`` returned: with ``keep_cache`` an object with ``sequences`` and
        the cache, else the sequences alone.
    """

    answers: list[list[int]]
    mask: Tensor
    output: Any


def _end(ids: Sequence[int], ends: Sequence[int]) -> int:
    """Return the index of the first end token, or ``len(ids)`` if there is none."""
    return next((at for at, token in enumerate(ids) if token in ends), len(ids))


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Switch dropout and gradients off inside; each part is back in its own mode afterwards."""
    torch: Any = require("torch", extra="models")
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True


def _log_probabilities(logits: Tensor, tail: Sequence[int]) -> list[float]:
    """Log-probabilities of the tokens `tail`, whose last one the last row of `logits` follows."""
    torch: Any = require("torch", extra="models")
    own = torch.log_softmax(logits[-len(tail) - 1 : -1].float(), dim=-1)
    chosen = own.gather(-1, torch.tensor(tail, device=own.device)[:, None])
    return [float(value) for value in chosen.squeeze(-1).tolist()]
