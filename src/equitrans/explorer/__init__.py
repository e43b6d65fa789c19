"""Trained models on one web page, and as a service."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.explorer.registry import Registry
    from equitrans.explorer.security import Access
    from equitrans.explorer.service import Service, create_service

__getattr__, __dir__, __all__ = face(__name__)
