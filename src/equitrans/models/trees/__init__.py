"""Hybrid trees with a conditional random field, for bracketed targets and few pairs."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.models.trees.model import Trees

__getattr__, __dir__, __all__ = face(__name__)
