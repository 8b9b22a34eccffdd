//! Links, switches and remote memory.
