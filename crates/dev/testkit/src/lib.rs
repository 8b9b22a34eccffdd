//! Generators, fixtures and simple reference models for tests.
