"""The probe: rotate the gold passage through the slots, ask the model, and draw its profile.

CAUS, section III-D, measures the position sensitivity index once per model; Liu et al. (2024)
and PositionalBias (section 4) rotate the gold passage through the slots in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared_core.arrays import Scores
from shared_core.checking import check_choice, check_count, check_counts_of, check_fractions
from shared_core.evaluation.graders import GRADERS, Grader, grade, grader_name, resolve_grader
from shared_core.evaluation.interim import InterimAnalyses, interim_decision
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.generation.ask import ModelClient
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.journal import Journal
from shared_core.generation.models import ScoringModel, as_generator
from shared_core.generation.responses import MAX_FAILED, check_max_failed
from shared_core.generation.templates import PromptTemplate, check_template
from shared_core.placement.order_gate import order_gains
from shared_core.sensitivity.measures import MeasureName, Rotation, resolve_measure
from shared_core.sensitivity.position_sensitivity import (
    THRESHOLD,
    check_slots,
    index_interval,
    index_statistic,
)
from shared_core.sensitivity.profile import PositionProfile
from shared_core.sensitivity.questions import ProbeQuestion, check_questions, mean_tokens
from shared_core.sensitivity.records import provenance
from shared_core.tokens import estimate_tokens


@dataclass(frozen=True)
class ProbePlan:
    """What a probe is going to cost.

    Attributes
    ----------
    questions
        Number of questions at most.
    slots
        Number of slots each is asked in.
    kept
        Answers that the journal already holds.
    calls
        Answers the model still has to give, at most.
    prompt_tokens
        Tokens of the prompts of those calls.
    estimated
        Whether the tokens are a guess (`estimate_tokens`) and not the model's own count.
    """

    questions: int
    slots: int
    kept: int
    calls: int
    prompt_tokens: int
    estimated: bool


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Measures how well a model reads each slot of its context.

    Attributes
    ----------
    k
        Number of passages in the context, >= 3: fewer have no middle.
    measure
        ``"accuracy"``: the graded answer. ``"logprob"``: the probability of the accepted answer
        (geometric mean over its tokens; local models). ``"distraction"``: the distracting effect
        of a hard distractor, 1 - P(abstain) (exact with a local model; otherwise the share of
        answers that do not abstain). None: ``"logprob"`` of a local model, which tells from fewer
        questions and of models that answer badly; else ``"accuracy"``.
    grader
        Name in `GRADERS`, or a function of answer and references to a value in [0, 1].
    template
        The prompt; by default one that suits the measure.
    slots
        Slots to measure, ascending; all by default. They must hold the first, the middle
        ``(k-1)//2`` and the last, which the index is made of.
    confidence
        Coverage of the interval, in (0, 1).
    looks
        How often, at most, to check whether the answers suffice. The probe stops early once the
        interval of the index, which is corrected for the looks, excludes 1.0, and the order gate is
        sure: an order surely gains over the ranked one, or none seems to. 1 asks every question.
    seed
        Seed of the interval's resampling.
    batch_size, concurrency
        Prompts in a call and calls at once; by default what suits the model.
    attempts
        Tries of a call that fails for a passing reason (rate limit, timeout), >= 1.
    max_failed
        Share of the questions that the model may fail on, in [0, 1). They are left out.
    task
        Kind of questions, for the record.

    Raises
    ------
    ValueError
        If an option is out of range or unknown.
    """

    k: int = 10
    measure: MeasureName | None = None
    grader: str | Grader = "em"
    template: PromptTemplate | None = None
    slots: Sequence[int] | None = None
    confidence: float = 0.95
    looks: int = 5
    seed: int = 0
    batch_size: int | None = None
    concurrency: int | None = None
    attempts: int = 8
    max_failed: float = MAX_FAILED
    task: str | None = None

    def __post_init__(self) -> None:
        check_counts_of(self, {"k": 3, "seed": 0, "looks": 1, "attempts": 1})
        check_counts_of(self, {"batch_size": 1, "concurrency": 1}, optional=True)
        resolve_grader(self.grader)
        if self.measure is not None:
            check_choice(self.measure, "measure", MeasureName)
        check_fractions({"confidence": self.confidence})
        check_max_failed(self.max_failed)
        check_template(self.template)
        check_slots(self._slots, self.k)

    @property
    def _slots(self) -> tuple[int, ...]:
        if self.slots is None:
            return tuple(range(self.k))
        return tuple(check_count(slot, "a slot", 0) for slot in self.slots)

    def measure_of(self, model: object) -> MeasureName:
        """Return what is measured of a model: `measure`, or what suits it."""
        if self.measure is not None:
            return self.measure
        return "logprob" if isinstance(model, ScoringModel) else "accuracy"

    def plan(
        self, model: object, questions: Sequence[ProbeQuestion], *, journal: Journal | None = None
    ) -> ProbePlan:
        """Return what `run` with the same arguments costs at most; nothing is asked.

        Raises
        ------
        ValueError
            If a question cannot be asked. Of a local model also if a prompt is longer than its
            context.
        """
        rotation = self._prepared(model, questions, journal)
        rotation.check_prompts()
        requests = [*dict.fromkeys(rotation.requests())]
        kept = rotation.client.kept(requests)
        new = [request[0] for request in requests if request not in kept]
        counter = getattr(rotation.client.model, "count_tokens", None)
        return ProbePlan(
            questions=len(rotation.questions),
            slots=len(rotation.slots),
            kept=len(kept),
            calls=len(new),
            prompt_tokens=sum(map(counter or estimate_tokens, new)),
            estimated=counter is None,
        )

    def run(
        self,
        model: object,
        questions: Sequence[ProbeQuestion],
        *,
        journal: Journal | None = None,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> PositionProfile:
        """Ask the model and return its profile.

        Parameters
        ----------
        model
            A `Generator`, a LangChain chat model, LLM or chain, a LlamaIndex LLM, or a function
            from prompts to answers.
        questions
            What to ask, in this order.
        journal
            Where every answer is kept at once, so that a second run does not ask again.
        on_answer
            Called with the number of answers that have come in since the last call.
        on_wait
            Called with a sentence when a call is put off after a passing failure.

        Raises
        ------
        ValueError
            If a question cannot be asked. Of a local model also if a prompt is longer than its
            context; before anything is asked.
        GenerationError
            If the model fails on more than ``max_failed`` of the questions, or would fail whatever
            it is asked.
        """
        rotation = self._prepared(model, questions, journal)
        rotation.check_prompts()
        total = len(rotation.questions)
        # The distracting effect decides no gate, so there is nothing to stop for.
        looks = 1 if rotation.measure.name == "distraction" else self.looks
        analyses = InterimAnalyses(total=total, count=looks, confidence=self.confidence)
        stopped = None
        for start, end in pairwise((0, *analyses.at)):
            rotation.ask(start, end, on_answer=on_answer, on_wait=on_wait)
            stopped = stop_reason(
                rotation.values,
                asked=end,
                slots=rotation.slots,
                k=self.k,
                analyses=analyses,
                seed=self.seed,
            )
            if stopped is not None:
                break
        return self._profile(rotation, analyses.confidence_at, stopped)

    def _prepared(
        self, model: object, questions: Sequence[ProbeQuestion], journal: Journal | None
    ) -> Rotation:
        """Return what asks the model the questions."""
        grader = resolve_grader(self.grader)
        check_questions(questions, self.k)
        if grader in GRADERS.values():  # any other may be expensive, or a language model
            for question in questions:
                grade(grader, "", question.answers)
        generator = as_generator(model)
        measure = resolve_measure(self.measure_of(generator), generator, self.template, grader)
        client = ModelClient.of(
            generator,
            journal=journal,
            batch_size=self.batch_size,
            concurrency=self.concurrency,
            attempts=self.attempts,
        )
        return Rotation(
            measure=measure,
            client=client,
            questions=questions,
            slots=self._slots,
            k=self.k,
            max_failed=self.max_failed,
        )

    def _profile(self, rotation: Rotation, level: float, stopped: str | None) -> PositionProfile:
        values, model, k, seed = rotation.values, rotation.client.model, self.k, self.seed
        identity = rotation.client.fingerprint  # of before the first question
        if rotation.client.journal is None:
            identity = model_fingerprint(model)
        means = tuple(values.mean(axis=0).tolist())
        measure = rotation.measure.name
        distraction = measure == "distraction"
        interval = None
        if not distraction:
            interval = index_interval(values, rotation.slots, k, confidence=level, seed=seed)
        return PositionProfile(
            model=model.name,
            accuracy=None if distraction else means,
            distraction=means if distraction else None,
            interval=interval,
            n=None if distraction else len(values),
            distraction_n=len(values) if distraction else None,
            source="posrag probe",
            slots=rotation.slots,
            outcomes=tuple(tuple(row) for row in values.tolist()),
            confidence=self.confidence,
            measure=measure,
            grader=grader_name(self.grader) if measure == "accuracy" else None,
            stopped=stopped,
            failures=dict(Counter(rotation.reasons.values())),
            empty=rotation.empty,
            tokens=mean_tokens(rotation.questions, k),
            window=model.window if isinstance(model, HuggingFaceModel) else None,
            **provenance(
                k=k,
                template=rotation.measure.template,
                task=self.task,
                seed=seed,
                identity=identity,
            ),
        )


def stop_reason(
    values: Scores,
    *,
    asked: int,
    slots: tuple[int, ...],
    k: int,
    analyses: InterimAnalyses,
    seed: int,
) -> str | None:
    """Return why the probe may stop, as a sentence; None if it goes on or is complete.

    It stops when no answer at all was right, or when the interval of the index lies on one side of
    1.0 and the order gate is sure. Of fewer than two questions with answers nothing is judged.

    Parameters
    ----------
    values
        Outcomes so far of the questions that were answered, shape (n, len(slots)).
    asked
        Number of questions behind them, those that the model failed on included.
    slots, k
        What was measured, of how many.
    analyses
        When to look, and through how wide an interval.
    seed
        Seed of the resampling.
    """
    if asked >= analyses.total or len(values) < 2:
        return None
    kept = f" ({len(values)} of them answered)" if len(values) < asked else ""
    so_far = f"after {asked} of {analyses.total} questions{kept}"
    if not values.any():
        return f"{so_far} not one answer was right"
    statistic, level = index_statistic(slots, k), analyses.confidence_at
    interval = bootstrap_interval(values, statistic, confidence=level, seed=seed)
    reason = interim_decision(interval, threshold=THRESHOLD)
    if reason is None or not _gate_is_sure(values, slots, k, analyses.confidence):
        return None
    return f"{so_far} {reason}"


def _gate_is_sure(values: Scores, slots: tuple[int, ...], k: int, confidence: float) -> bool:
    """Return whether an order surely gains, or none seems to: more questions would not tell more.

    The index sees that the edges differ from the middle long before an order is known to gain.
    """
    profile = PositionProfile(
        model="asked",
        k=k,
        slots=slots,
        accuracy=tuple(values.mean(axis=0).tolist()),
        outcomes=tuple(map(tuple, values.tolist())),
        n=len(values),
        confidence=confidence,
    )
    gains = order_gains(profile)
    return any(each.is_sure for each in gains) or all(each.gain <= 0 for each in gains)
