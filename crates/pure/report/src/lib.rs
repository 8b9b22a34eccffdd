//! Result schema, expectations, tables and cost.
