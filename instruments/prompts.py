"""The prompt the readers know, and their tokenizer."""

from __future__ import annotations

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from instruments.corpus import ABSTENTION
from instruments.words import ADJECTIVES, DOCUMENTS, NOUNS, QUESTIONS, REMARKS, VALUES

HEAD = (
    "Use the context to answer the question. Give the answer alone, in the words of the context."
    "\n\nContext:\n"
)
ASK = "\n\nQuestion:"
REPLY = "\nAnswer:"
PROMPT = f"{HEAD}{{context}}{ASK} {{question}}{REPLY}"

PAD, EOS = "<pad>", "<eos>"


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Train a byte-level BPE on the generator's own words; every word becomes one token.

    The template's fixed phrases are tokens of their own: shorter prompts train faster.
    """
    tokenizer = Tokenizer(models.BPE())
    pattern = Regex(r" ?[\p{L}\p{N}\-]+|[^\s\p{L}\p{N}]\n*|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    spaced = [f" {word}" for word in (*ADJECTIVES, *NOUNS, *VALUES, ABSTENTION)]
    fixed = [text.format(key="amber", value="amber") for text in (*DOCUMENTS, *QUESTIONS, *REMARKS)]
    trainer = trainers.BpeTrainer(
        vocab_size=20_000,  # never reached: the merges end when every word is whole
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [*spaced, *fixed, *(f" {text}" for text in fixed), ".\n\n"]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (HEAD, ASK, "?" + REPLY)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
