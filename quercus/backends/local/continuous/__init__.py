"""Continuous queries on one machine: windows as relations over time, DuckDB for what is relational."""
