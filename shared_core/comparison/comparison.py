"""The comparison: whether another order of the passages helps a model on your own questions.

PositionalBias (section 5) finds that in realistic retrieval careful placement rarely beats
shuffling. This measures it for your own retriever, model and questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from shared_core.arrays import Embed
from shared_core.checking import (
    check_choice,
    check_count,
    check_counts_of,
    check_distinct,
    check_several,
)
from shared_core.comparison.grading import LOGPROB, AnyGrader, Grading, name_of, same_answer
from shared_core.comparison.job import ComparisonJob
from shared_core.comparison.questions import ComparisonData
from shared_core.comparison.result import ComparisonResult, Layout
from shared_core.comparison.retrieval import DEFAULT_K, GIVEN, Reranker, Retrieval, parse_pipeline
from shared_core.comparison.strategies import (
    DEFAULTS,
    AnyStrategy,
    by_name,
    make_strategies,
)
from shared_core.generation.ask import ModelClient
from shared_core.generation.journal import Journal
from shared_core.generation.models import ScoringModel, as_generator
from shared_core.generation.responses import MAX_FAILED, check_max_failed
from shared_core.generation.templates import (
    ABSTAIN,
    ANSWER,
    LAYOUTS,
    PromptTemplate,
    check_template,
)
from shared_core.sensitivity.curve import PositionalCurve, resolve_curve
from shared_core.sensitivity.profile import PositionProfile


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Compares arrangement strategies on the same questions, passages and model.

    Intervals are of 95%, and tests at 0.05. Each leg of a pipeline is searched 50 passages deep
    before fusion and optional steps.

    Attributes
    ----------
    pipelines
        Where passages come from: names in `PIPELINES`, each also with optional steps, in the order
        of `STEPS`; what a step gains is told where the same pipeline is given without it.
        By default ``"given"`` where every question has its own documents, else ``"hybrid"``.
    ks
        Numbers of passages in the prompt, >= 2; by default 10, or all where there are fewer.
    token_budget
        Most tokens of the passages of a prompt, >= 1, by `estimate_tokens`: as many of the k as it
        holds, or with ``+spans`` fewer with their neighbours. None: no limit.
    strategies
        Names in `STRATEGIES`, or placements, also of your own. ``"sequential"`` and ``"shuffle"``
        always take part, as they are, also in place of placements of these names.
        ``"distraction_aware"`` takes part on request:
        it shows a local model every passage alone, and does harm on the readers where it is not
        known which passages hold the answer (``python -m benchmarks.distraction``).
    shuffles
        Random orders per question; its outcome by ``"shuffle"`` is their mean.
    graders
        Names in `GRADERS`, or functions of answer and references, such as a language model that
        judges; the first one decides. No answer to a question is graded twice in a run. A function
        that is to see the question, or to keep its scores, can close over them: over a mapping of
        references to questions, say, or over a file.
        ``("logprob",)``: the probability of the first accepted answer by a local model, which shows
        from fewer questions what an order changes, and of models that answer badly. Questions
        without accepted answers are not graded; it is told how many answers the order changes.
    layouts
        Where the question stands: ``"after"`` the passages, ``"before"`` them, or at ``"both"``
        ends of the prompt; others than the first need the default `template`.
    same
        Whether two answers say the same; by default if they are equal to `normalize_answer`.
    again
        Ask for the answer in the ranked order a second time, to tell answers that change with the
        order from those that change by themselves. None: if the questions have no accepted answers.
        A local model is never asked, as it always gives the same one.
    template, abstain
        The prompt; and the one that allows the model to abstain, for ``"distraction_aware"``.
    profile
        The model's position profile, or its path or name, for ``"max_relevance"``,
        ``"min_distraction"`` and ``"distraction_aware"``. Of several lengths each question takes
        the one that a retriever's gate takes, by the tokens of its passages.
    curve
        The model's positional curve, or its path or name, for ``"attention"``.
    embed
        Texts to vectors, for pipelines with a dense leg.
    embedding
        Name of the embedding model, for the record.
    reranker
        Question and texts to scores, for pipelines with ``+rerank``.
    seed
        Of shuffles and intervals, >= 0.
    max_failed
        Share of a setting's questions that the model may fail on, in [0, 1).
    batch_size, concurrency
        Prompts per call, and calls at once; the defaults suit the model.
    attempts
        Tries of a call that fails for a transient reason, >= 1.

    Raises
    ------
    ValueError
        If an option is out of range or unknown.
    ProfileNotFoundError
        If there is no such profile or curve.
    """

    pipelines: Sequence[str] | None = None
    ks: Sequence[int] | None = None
    token_budget: int | None = None
    strategies: Sequence[AnyStrategy] = DEFAULTS
    shuffles: int = 3
    graders: Sequence[AnyGrader] = ("em",)
    layouts: Sequence[Layout] = ("after",)
    same: Callable[[str, str], bool] = same_answer
    again: bool | None = None
    template: PromptTemplate = ANSWER
    abstain: PromptTemplate = ABSTAIN
    profile: PositionProfile | str | Path | None = None
    curve: PositionalCurve | str | Path | None = None
    embed: Embed | None = None
    embedding: str | None = None
    reranker: Reranker | None = None
    seed: int = 0
    max_failed: float = MAX_FAILED
    batch_size: int | None = None
    concurrency: int | None = None
    attempts: int = 8

    def __post_init__(self) -> None:
        for name in ("pipelines", "ks", "strategies", "graders", "layouts"):
            check_several(getattr(self, name), name)
        for template in (self.template, self.abstain):
            check_template(template)
        for name in self.pipelines or ():
            parse_pipeline(name)
        if self.ks is not None:
            object.__setattr__(self, "ks", tuple(check_count(k, "k", 2) for k in self.ks))
        check_counts_of(self, {"seed": 0, "shuffles": 1, "attempts": 1})
        check_counts_of(self, {"batch_size": 1, "concurrency": 1, "token_budget": 1}, optional=True)
        check_distinct("pipelines", (GIVEN,) if self.pipelines is None else self.pipelines)
        check_distinct("ks", (DEFAULT_K,) if self.ks is None else self.ks)
        by_name(self.strategies)
        check_distinct("graders", [*map(name_of, self.graders)])
        if LOGPROB in self.graders and len(self.graders) > 1:
            raise ValueError(
                "give the grader 'logprob' alone: it asks for no answers that others could grade"
            )
        check_distinct("layouts", self.layouts)
        for layout in self.layouts:
            check_choice(layout, "layout", Layout)
        if tuple(self.layouts) != ("after",) and self.template != ANSWER:
            raise ValueError(
                "layouts move the question in the default prompt: in a template of your own it "
                "stands where you put it; compare once with each"
            )
        check_max_failed(self.max_failed)
        _ = self.known_profile, self.known_curve

    def job(
        self, model: object, data: ComparisonData, *, journal: Journal | None = None
    ) -> ComparisonJob:
        """Retrieve passages; return the job that plans the questions to the model and asks them.

        Everything is embedded, retrieved and reranked here, once for `ComparisonJob.plan` and
        `ComparisonJob.run`. The model is not asked yet.

        Parameters
        ----------
        model
            A `Generator`, a LangChain chat model, LLM or chain, a LlamaIndex LLM, or a function
            from prompts to answers.
        data
            Questions and passages.
        journal
            Keeps every answer at once, so that a second run does not ask again.

        Raises
        ------
        ValueError
            If a pipeline or strategy needs what is not given, or a grader cannot use a reference.
        """
        generator = as_generator(model)
        gradings = [*map(Grading, self.graders)] if data.answered else []
        for grading in gradings:
            grading.check(data.questions)
        if LOGPROB in self.graders and not (data.answered and isinstance(generator, ScoringModel)):
            raise ValueError(
                "the grader 'logprob' needs accepted answers and a local model, and "
                f"{generator.name} is none, or there are none; take another of --graders"
            )
        retrieval = Retrieval(
            data=data,
            embed=self.embed,
            reranker=self.reranker,
            token_budget=self.token_budget,
        )
        return ComparisonJob(
            options=self,
            model=generator,
            data=data,
            client=ModelClient.of(
                generator,
                journal=journal,
                batch_size=self.batch_size,
                concurrency=self.concurrency,
                attempts=self.attempts,
            ),
            settings=tuple(
                setting.laid_out(layout, LAYOUTS[layout] if layout != "after" else self.template)
                for setting in retrieval.settings(self.pipelines, self.ks)
                for layout in self.layouts
            ),
            strategies=make_strategies(self.strategies, self, generator),
            gradings=gradings,
            seconds=retrieval.seconds,
        )

    def run(
        self,
        model: object,
        data: ComparisonData,
        *,
        journal: Journal | None = None,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> ComparisonResult:
        """Make the `job` and run it: ask the model, and return the result.

        Parameters
        ----------
        model, data, journal
            As of `job`.
        on_answer, on_wait
            As of `ComparisonJob.run`.

        Raises
        ------
        ValueError, GenerationError, MissingExtraError
            As both of them.
        """
        job = self.job(model, data, journal=journal)
        return job.run(on_answer=on_answer, on_wait=on_wait)

    @cached_property
    def known_profile(self) -> PositionProfile | None:
        """The position profile, loaded."""
        if self.profile is None or isinstance(self.profile, PositionProfile):
            return self.profile
        return PositionProfile.load(self.profile)

    @cached_property
    def known_curve(self) -> PositionalCurve | None:
        """The positional curve, loaded."""
        return resolve_curve(self.curve)
