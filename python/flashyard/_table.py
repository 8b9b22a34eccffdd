"""Tables of results, for any library that speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class ArrowTable(Protocol):
    """An object with the Arrow PyCapsule interface: tables of pyarrow, Polars, pandas, DuckDB and many others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream."""


class Table:
    """A table with units in the names of its columns. It is handed over without a copy:

    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``duckdb.sql("select * from table")``.
    """

    def __init__(self, native: Any) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._native.num_rows)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._native.column_names)

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def to_pyarrow(self) -> pyarrow.Table:
        """The table as pyarrow's, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """The table as Polars', without a copy of its numbers."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as pandas'."""
        frame: pandas.DataFrame = self.to_pyarrow().to_pandas()
        return frame


class Tables(Mapping[str, Table]):
    """Tables by name."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._names: list[str] = list(native.table_names())

    def __getitem__(self, name: str) -> Table:
        return Table(self._native.table(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Tables({', '.join(self._names)})"
