"""numpy, loaded when something is computed: most commands compute nothing, and begin sooner without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ("Array", "Counts", "Places", "np")

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]
    Counts = npt.NDArray[np.int64]
else:

    class _Numpy:
        """The module's names, each looked up once."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _Numpy()
    Array = Places = Counts = object
