//! From a description in TOML to a running world.
