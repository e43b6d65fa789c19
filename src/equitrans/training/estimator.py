"""A model with the interface of scikit-learn, for its cross-validation, searches and pipelines.
It works without scikit-learn, which asks for methods, not for base classes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from equitrans.data import Pair, as_pairs
from equitrans.errors import ConfigError, DataError, RunError, nearest, shown
from equitrans.models import ModelConfig, TransducerConfig, name_of
from equitrans.paper import LexicalClass
from equitrans.settings import check_iterable, from_dict
from equitrans.training.config import TrainingConfig, usual_training
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained

Sentences = Iterable[str | Sequence[str]]
USUAL = TransducerConfig()


class Estimator:
    """A model of sentences, which are strings or sequences of words; its score is exact match.

    ``model__hidden`` or ``training__epochs`` name single settings of the model and of training.

    >>> from equitrans.data.scan import VERBS
    >>> estimator = Estimator([VERBS], model=TransducerConfig(aligner="recursive"))
    >>> learned = {"walk twice": "I_WALK I_WALK", "run twice": "I_RUN I_RUN", "look": "I_LOOK"}
    >>> _ = estimator.fit(learned.keys(), learned.values())
    >>> estimator.predict(["jump twice"])
    ['I_JUMP I_JUMP']
    >>> estimator.set_params(model__hidden=8).get_params()["model__hidden"]
    8
    """

    trained_: Trained
    """The trained model, after ``fit``."""

    def __init__(
        self,
        classes: Iterable[LexicalClass] | Literal["discover"] = (),
        *,
        model: ModelConfig = USUAL,
        training: TrainingConfig | None = None,
        seed: int = 0,
        width: int = 3,
        characters: bool = False,
    ) -> None:
        self.classes = classes
        self.model = model
        self.training = training
        self.seed = seed
        self.width = width
        self.characters = characters

    def fit(self, X: Sentences, y: Sentences) -> "Estimator":  # noqa: N803
        """Train on sources and their targets."""
        targets = _sentences(y)
        self.trained_ = fit(
            _pairs(X, targets, characters=self.characters),
            self.classes,
            model=self.model,
            training=self.training,
            seed=self.seed,
            characters=self.characters,
        )
        self._strings = all(isinstance(target, str) for target in targets)
        return self

    def predict(self, X: Sentences) -> list[Any]:  # noqa: N803
        """The target of each source: a string if the training targets were strings, else words.
        A refused source gives an empty one; ``trained_.predict`` gives the reason.
        """
        found = self._model().predict(_sentences(X), width=self.width)
        words = [prediction.words for prediction in found]
        return [self.trained_.text(w) for w in words] if self._strings else words

    def score(self, X: Sentences, y: Sentences) -> float:  # noqa: N803
        """The share of sources whose target is predicted exactly; a refused source is wrong."""
        pairs = _pairs(X, y, characters=self.characters)
        return self._model().score(pairs, width=self.width)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name; ``deep`` adds single settings of the model and of training."""
        names = ("classes", "model", "training", "seed", "width", "characters")
        params = {name: getattr(self, name) for name in names}
        if deep:
            training = self._training()
            params |= {f"model__{k}": v for k, v in asdict(self.model).items()}
            params |= {f"training__{k}": v for k, v in asdict(training).items()}
        return params

    def set_params(self, **params: Any) -> "Estimator":
        """Change settings by name; ``model`` and ``training`` come before single settings."""
        known = self.get_params()
        for name, value in sorted(params.items(), key=lambda item: "__" in item[0]):
            section, nested, key = name.partition("__")
            if section == "model" and nested:
                self.model = from_dict(type(self.model), asdict(self.model) | {key: value})
            elif section == "training" and nested:
                self.training = from_dict(TrainingConfig, asdict(self._training()) | {key: value})
            elif name in known:
                setattr(self, name, value)
            else:
                raise ConfigError(f"{name!r} is not a setting{nearest(name, known)}")
        return self

    def __sklearn_tags__(self) -> Any:
        """The properties that scikit-learn asks for; only scikit-learn calls this."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trained_")

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.get_params(deep=False).items())
        return f"Estimator({shown})"

    def _training(self) -> TrainingConfig:
        name_of(self.model)
        training = self.training or usual_training(self.model)
        if not isinstance(training, TrainingConfig):
            raise ConfigError(f"training is {shown(training)}; expected a TrainingConfig")
        return training

    def _model(self) -> Trained:
        if not self.__sklearn_is_fitted__():
            raise RunError("the estimator is not fitted; call fit first")
        return self.trained_


def _sentences(given: Sentences) -> list[str | Sequence[str]]:
    """A list of sentences; raise DataError for a single string."""
    check_iterable("sentences", given)
    return list(given)


def _pairs(sources: Sentences, targets: Sentences, *, characters: bool) -> tuple[Pair, ...]:
    sources, targets = _sentences(sources), _sentences(targets)
    if len(sources) != len(targets):
        raise DataError(f"{len(sources)} sources but {len(targets)} targets; each needs one")
    return as_pairs(zip(sources, targets, strict=True), characters=characters)
