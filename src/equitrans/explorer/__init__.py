"""Trained models on one web page."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.explorer.registry import Registry
    from equitrans.explorer.security import Access

__getattr__, __dir__, __all__ = face(__name__)
